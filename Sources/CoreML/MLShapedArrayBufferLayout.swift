// Orders of a shaped array's scalars in memory, and the form in which shaped arrays are coded.
import Foundation

@available(macOS 15, iOS 18, *)
public enum MLShapedArrayBufferLayout: Sendable {
    /// C order.
    case firstMajorContiguous
    /// Fortran order.
    case lastMajorContiguous
    /// Counted in scalars.
    case strides([Int])
}

@available(macOS 15, iOS 18, *)
extension MLShapedArrayBufferLayout {
    func layout(_ shape: [Int]) -> ArrayLayout {
        switch self {
        case .firstMajorContiguous: return .checked(shape)
        case .lastMajorContiguous:
            let reversed = ArrayLayout.checked(shape.reversed())
            return .checked(shape, reversed.strides.reversed())
        case .strides(let strides): return .checked(shape, strides)
        }
    }
}

/// Throws for a shape that does not have as many scalars as there are.
struct CodedShapedArray<Scalar: MLShapedArrayScalar> {
    let shape: [Int]
    let scalars: [Scalar]

    fileprivate enum CodingKeys: CodingKey { case shape, scalars }
}

extension CodedShapedArray: Encodable where Scalar: Encodable {
    init<A: MLShapedArrayProtocol>(_ array: A) where A.Scalar == Scalar {
        (shape, scalars) = (array.shape, array.scalars)
    }
}

extension CodedShapedArray: Decodable where Scalar: Decodable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        shape = try container.decode([Int].self, forKey: .shape)
        scalars = try container.decode([Scalar].self, forKey: .scalars)
        guard ArrayLayout(cOrder: shape)?.count == scalars.count else {
            throw DecodingError.dataCorruptedError(
                forKey: .scalars, in: container, debugDescription: "\(scalars.count) scalars for the shape \(shape)")
        }
    }
}
