// Resizing of images: samples at grid points along the spatial axes. Grids are constants, so that one axis is a gather
// (nearest) or two gathers and a weighted sum (linear).
import RLXKernels

let resizingRules: [OperationRule] = [
    OperationRule(
        "upsample_nearest_neighbor",
        ["x": .required, "scale_factor_height": 1.0, "scale_factor_width": 1.0]
    ) { (call) throws(RuntimeError) in
        let x = try call.resizable()
        let sizes = try call.scaledSizes(x, "scale_factor_height", "scale_factor_width")
        return try call.resampled(x, sizes) { input, output in .floor(input, output) }
    },
    OperationRule(
        "resize_nearest_neighbor",
        ["x": .required, "target_size_height": .required, "target_size_width": .required]
    ) { (call) throws(RuntimeError) in
        let x = try call.resizable()
        let sizes = [try call.int("target_size_height"), try call.int("target_size_width")]
        return try call.resampled(x, sizes) { input, output in .floor(input, output) }
    },
    OperationRule(
        "upsample_bilinear",
        [
            "x": .required, "scale_factor_height": 1.0, "scale_factor_width": 1.0, "align_corners": true,
            "half_pixel_centers": .absent,
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.resizable()
        let sizes = try call.scaledSizes(x, "scale_factor_height", "scale_factor_width")
        let aligns = try call.bool("align_corners")
        let isHalfPixel = try call.has("half_pixel_centers") ? call.bool("half_pixel_centers") : !aligns
        let mode: SamplingMode = aligns ? .strictAlignCorners : isHalfPixel ? .unalignCorners : .standard
        return try call.resampled(x, sizes) { input, output in .linear(mode.points(input, output)) }
    },
    OperationRule(
        "resize_bilinear",
        ["x": .required, "target_size_height": .required, "target_size_width": .required, "sampling_mode": "DEFAULT"]
    ) { (call) throws(RuntimeError) in
        let x = try call.resizable()
        let mode = try call.choice("sampling_mode", SamplingMode.self)
        let sizes = [try call.int("target_size_height"), try call.int("target_size_width")]
        return try call.resampled(x, sizes) { input, output in .linear(mode.points(input, output)) }
    },
    OperationRule(
        "resize",
        [
            "x": .required, "shape": .required, "resized_dims": .required, "interpolation_mode": "LINEAR",
            "sampling_mode": "DEFAULT",
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.number("x")
        let count = try call.int("resized_dims")
        let shape = try call.ints("shape")
        guard count >= 0, count <= min(x.rank, shape.count) else {
            throw call.failure(.value(parameter: "resized_dims", got: "\(count)", expected: "at most \(x.rank)"))
        }
        let inherited = x.shape.suffix(count)
        let sizes = zip(shape.suffix(count), inherited).map { $0 == 0 ? $1 : $0 }
        let mode = try call.choice("sampling_mode", SamplingMode.self)
        let isNearest = try call.choice("interpolation_mode", InterpolationMode.self) == .nearest
        let image = isNearest || x.type.isFloat ? x : try call.graph.cast(x, to: .float32)
        let result = try call.resampled(image, sizes) { input, output in
            let points = mode.points(input, output)
            return isNearest ? .nearest(points.map { Int(($0 + 0.5).rounded(.down)) }) : .linear(points)
        }
        return try call.graph.cast(result, to: x.type)
    },
    OperationRule("crop", ["x": .required, "crop_height": .required, "crop_width": .required]) {
        (call) throws(RuntimeError) in
        var x = try call.view("x")
        guard x.rank >= 2 else { throw call.failure(.rank(parameter: "x", got: x.rank, expected: "at least 2")) }
        for (name, axis) in [("crop_height", x.rank - 2), ("crop_width", x.rank - 1)] {
            let crop = try call.ints(name)
            guard crop.count == 2, crop.allSatisfy({ $0 >= 0 && $0 <= x.shape[axis] }),
                crop[0] + crop[1] <= x.shape[axis]
            else {
                throw call.failure(.value(parameter: name, got: "\(crop)", expected: "less than \(x.shape[axis])"))
            }
            x = x.sliced(axis: axis, start: crop[0], count: x.shape[axis] - crop[0] - crop[1])
        }
        return x
    },
]

private enum InterpolationMode: String, CaseIterable {
    case linear
    case nearest = "nearest_neighbor"
}

/// How the points of an output axis lie on the input axis.
enum SamplingMode: String, CaseIterable {
    case standard = "default"
    case strictAlignCorners = "strict_align_corners"
    case alignCorners = "align_corners"
    case offsetCorners = "offset_corners"
    case unalignCorners = "unalign_corners"

    func points(_ input: Int, _ output: Int) -> [Double] {
        let (x, y) = (Double(input), Double(output))
        return (0..<output).map { index in
            let i = Double(index)
            let point =
                switch self {
                case .standard: i * x / y
                case .strictAlignCorners: output == 1 ? 0 : i * (x - 1) / (y - 1)
                case .alignCorners: output == 1 ? (x - 1) / 2 : i * (x - 1) / (y - 1)
                case .offsetCorners: (i + 0.5) * max(1, x - 1) / y
                case .unalignCorners: (i + 0.5) * x / y - 0.5
                }
            return min(max(point, 0), x - 1)
        }
    }
}

/// What an output axis takes from the input axis.
private enum Samples {
    case nearest([Int])
    case linear([Double])

    static func floor(_ input: Int, _ output: Int) -> Samples {
        .nearest((0..<output).map { $0 * input / output })
    }
}

extension Call {
    fileprivate func resizable() throws(RuntimeError) -> View {
        let x = try float(view: "x")
        guard x.rank >= 3 else { throw failure(.rank(parameter: "x", got: x.rank, expected: "at least 3")) }
        return x
    }

    fileprivate func scaledSizes(_ x: View, _ height: String, _ width: String) throws(RuntimeError) -> [Int] {
        var sizes: [Int] = []
        for (name, input) in zip([height, width], x.shape.suffix(2)) {
            let size = (Double(input) * Double(try float(name))).rounded(.down)
            guard size >= 1, size <= Double(1 << 24) else {
                throw failure(.value(parameter: name, got: "\(try float(name))", expected: "a positive scale"))
            }
            sizes.append(Int(size))
        }
        return sizes
    }

    /// `x` with its last axes sampled anew.
    fileprivate func resampled(
        _ x: View, _ sizes: [Int], _ samples: (_ input: Int, _ output: Int) -> Samples
    ) throws(RuntimeError) -> View {
        var result = x
        for (index, size) in sizes.enumerated() {
            let axis = x.rank - sizes.count + index
            guard size >= 1, size <= 1 << 24, x.shape[axis] >= 1, x.shape[axis] <= 1 << 24 else {
                throw failure(.value(parameter: "shape", got: "\(size)", expected: "a size from 1 on"))
            }
            let same = 0..<x.shape[axis]
            switch samples(x.shape[axis], size) {
            case .nearest(let places) where places != Array(same): result = try sampled(result, axis, places)
            case .linear(let points) where points != same.map(Double.init):
                result = try interpolated(result, axis, points)
            default: break
            }
        }
        return try graph.cast(result, to: x.type)
    }

    private func sampled(_ x: View, _ axis: Int, _ places: [Int]) throws(RuntimeError) -> View {
        let storage = try Storage(type: .int32, shape: [places.count])
        storage.fill(places.map { Int32($0) })
        return try graph.gather(x, graph.constant(storage), axis: axis, batchDims: 0)
    }

    private func interpolated(_ x: View, _ axis: Int, _ points: [Double]) throws(RuntimeError) -> View {
        let lower = points.map { Int($0) }
        // A point on an element takes that element alone, as two halves: its neighbour may be infinite.
        let isElement = zip(points, lower).map { $0 == Double($1) }
        let upper = zip(isElement, lower).map { $0 ? $1 : min($1 + 1, x.shape[axis] - 1) }
        let first = try sampled(x, axis, lower)
        let second = try sampled(x, axis, upper)
        let storage = try Storage(type: .float32, shape: [points.count])
        storage.fill(points.indices.map { isElement[$0] ? 0.5 : Float(points[$0] - Double(lower[$0])) })
        let weight = graph.constant(storage).expanded(at: Array(1..<x.rank - axis))
        let rest = try graph.map(RLXK_SUB, [graph.scalar(1, .float32), weight], .float32)
        let product = try graph.map(RLXK_MUL, [first, rest], .float32)
        return try graph.map(RLXK_ADD, [product, graph.map(RLXK_MUL, [second, weight], .float32)], .float32)
    }
}
