import CoreML
import Testing

@Suite struct SendableValueTests {
    @Test func scalars() throws {
        let seven = MLSendableFeatureValue(7)
        #expect(seven.integerValue == 7 && seven.type == .int64 && seven.isScalar && !seven.isShapedArray)
        #expect(seven == MLSendableFeatureValue(Int32(7)))
        #expect(MLSendableFeatureValue(Float(0.5)).floatValue == 0.5)
        #expect(MLSendableFeatureValue(Float(0.5)).type == .double)
        #expect(MLSendableFeatureValue("a").stringValue == "a")
        let nothing = MLSendableFeatureValue(undefined: .string)
        #expect(nothing.isUndefined && nothing.type == .string)
    }

    @Test func thereAndBack() throws {
        let values = [
            MLFeatureValue(int64: -3), MLFeatureValue(double: 2.5), MLFeatureValue(string: "x"),
            MLFeatureValue(multiArray: try array([1, 2, 3, 4, 5, 6], [2, 3])),
            MLFeatureValue(sequence: MLSequence(strings: ["a", "b"])),
            try MLFeatureValue(dictionary: ["a": 1, "b": 2.5]), MLFeatureValue(undefined: .double),
        ]
        for value in values {
            let sendable = try #require(MLSendableFeatureValue(value))
            #expect(MLFeatureValue(sendable).isEqual(to: value), "\(value)")
        }
        #expect(MLSendableFeatureValue(MLFeatureValue(sequence: MLSequence(int64s: [1]))) == nil)
        #expect(MLSendableFeatureValue([1: 2]).integerDictionaryValue == [1: 2])
        #expect(MLFeatureValue(MLSendableFeatureValue([1: 2])).dictionaryValue[1] == 2)
    }

    @Test func nobodyCanChangeThem() throws {
        let source = try array([1, 2], [2])
        let value = try #require(MLSendableFeatureValue(MLFeatureValue(multiArray: source)))
        source[0] = 9
        MLFeatureValue(value).multiArrayValue?[1] = 9
        #expect(value.shapedArrayValue(of: Float.self)?.scalars == [1, 2])
        #expect(value.shapedArrayValue(of: Int32.self) == nil)
    }
}

/// Numbers that Apple's headers give and that files and other languages rely on.
@Suite struct RawValueTests {
    @Test func all() {
        #expect([MLComputeUnits.cpuOnly, .cpuAndGPU, .all, .cpuAndNeuralEngine].map(\.rawValue) == [0, 1, 2, 3])
        #expect(
            [MLMultiArrayDataType.double, .float32, .float16, .int32, .int8].map(\.rawValue) == [
                0x10040, 0x10020, 0x10010, 0x20020, 0x20008,
            ])
        #expect(
            [MLFeatureType.invalid, .int64, .double, .string, .image, .multiArray, .dictionary, .sequence, .state]
                .map(\.rawValue) == Array(0...8))
        #expect([MLMultiArrayShapeConstraintType.unspecified, .enumerated, .range].map(\.rawValue) == [1, 2, 3])
        #expect([MLImageSizeConstraintType.unspecified, .enumerated, .range].map(\.rawValue) == [0, 2, 3])
        let codes: [MLModelError.Code] = [
            .generic, .featureType, .io, .customLayer, .customModel, .update, .parameters, .modelDecryptionKeyFetch,
            .modelDecryption, .modelCollection, .predictionCancelled,
        ]
        #expect(codes.map(\.rawValue) == [0, 1] + Array(3...11))
    }
}

@Suite struct ShapedArrayShapeTests {
    let counted = MLShapedArray<Float>(scalars: (0..<6).map(Float.init), shape: [2, 1, 3])

    @Test func shapes() {
        #expect(counted.squeezingShape().shape == [2, 3])
        #expect(counted.expandingShape(at: 3).shape == [2, 1, 3, 1])
        #expect(counted.transposed().shape == [3, 1, 2])
        #expect(counted.transposed().scalars == [0, 3, 1, 4, 2, 5])
        #expect(counted.transposed(permutation: [1, 0, 2]).scalars == counted.scalars)
    }

    @Test func foreignBytes() {
        let bytes = UnsafeMutablePointer<Int32>.allocate(capacity: 6)
        bytes.initialize(from: [1, 2, 0, 3, 4, 0], count: 6)
        var isReleased = false
        do {
            let array = MLShapedArray<Int32>(
                bytesNoCopy: bytes, shape: [2, 2], strides: [3, 1],
                deallocator: .custom { pointer, _ in
                    pointer.deallocate()
                    isReleased = true
                })
            #expect(array.scalars == [1, 2, 3, 4])
            withExtendedLifetime(array) { #expect(!isReleased) }
        }
        #expect(isReleased)
    }
}
