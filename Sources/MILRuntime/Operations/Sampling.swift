// Images sampled at points that are values: resample, affine, crop_resize.
import RLXKernels

let samplingRules: [OperationRule] = [
    OperationRule(
        "resample",
        [
            "x": .required, "coordinates": .required, "sampling_mode": .required, "padding_mode": .required,
            "padding_value": .required, "coordinates_mode": .required, "align_corners": .required,
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.image4("x")
        let coordinates = try call.number("coordinates")
        guard coordinates.rank == 4, coordinates.shape[0] == x.shape[0], coordinates.shape[3] == 2 else {
            throw call.failure(
                .shape(parameter: "coordinates", got: coordinates.shape, expected: "[\(x.shape[0]), h, w, 2]"))
        }
        let points = try call.pixels(call.graph.cast(coordinates, to: .float32), x)
        return try call.sampled(x, points, border: call.border())
    },
    OperationRule(
        "affine",
        [
            "x": .required, "transform_matrix": .required, "output_height": .required, "output_width": .required,
            "sampling_mode": .required, "padding_mode": .required, "padding_value": .required,
            "coordinates_mode": .required, "align_corners": .required,
        ]
    ) { (call) throws(RuntimeError) in
        let x = try call.image4("x")
        let matrix = try call.float(view: "transform_matrix")
        let (height, width) = (try call.size("output_height"), try call.size("output_width"))
        guard matrix.rank == 2, matrix.shape[1] == 6, matrix.shape[0] == x.shape[0] || matrix.shape[0] == 1 else {
            throw call.failure(
                .shape(parameter: "transform_matrix", got: matrix.shape, expected: "[\(x.shape[0]), 6]"))
        }
        let graph = call.graph
        let corners = try call.bool("align_corners")
        let columns = try call.normalizedGrid(width, corners).expanded(at: [0])
        let rows = try call.normalizedGrid(height, corners).expanded(at: [1])
        let parts = try (0..<2).map { (part) throws(RuntimeError) in
            func entry(_ index: Int) -> View {
                matrix.sliced(axis: 1, start: 3 * part + index, count: 1).expanded(at: [2])
            }
            let sum = try graph.map(
                RLXK_ADD,
                [
                    graph.map(RLXK_MUL, [entry(0), columns], .float32),
                    graph.map(RLXK_MUL, [entry(1), rows], .float32),
                ], .float32)
            return try graph.map(RLXK_ADD, [sum, entry(2)], .float32)
        }
        let shape = [x.shape[0], height, width]
        let grid = try graph.concat(parts.map { $0.broadcast(to: shape).expanded(at: [3]) }, axis: 3)
        return try call.sampled(x, call.pixels(grid, x), border: call.border())
    },
    OperationRule(
        "crop_resize",
        [
            "x": .required, "roi": .absent, "boxes": .absent, "box_indices": .absent, "target_height": 1,
            "target_width": 1, "normalized_coordinates": false, "spatial_scale": 1.0,
            "box_coordinate_mode": "CORNERS_HEIGHT_FIRST", "sampling_mode": "DEFAULT", "pad_value": 0.0,
        ]
    ) { (call) throws(RuntimeError) in try call.cropResize() },
]

private enum SamplingKind: String, CaseIterable {
    case bilinear, nearest
}

private enum PaddingKind: String, CaseIterable {
    case constant, border, reflection, symmetric

    var kernelBorder: rlxk_border {
        switch self {
        case .constant: RLXK_BORDER_CONSTANT
        case .border: RLXK_BORDER_EDGE
        case .reflection: RLXK_BORDER_REFLECT
        case .symmetric: RLXK_BORDER_SYMMETRIC
        }
    }
}

private enum CoordinatesKind: String, CaseIterable {
    case unnormalized
    case minusOneToOne = "normalized_minus_one_to_one"
    case zeroToOne = "normalized_zero_to_one"
}

private enum BoxKind: String, CaseIterable {
    case cornersHeightFirst = "corners_height_first"
    case cornersWidthFirst = "corners_width_first"
    case centerHeightFirst = "center_size_height_first"
    case centerWidthFirst = "center_size_width_first"
}

extension Call {
    fileprivate func image4(_ name: String) throws(RuntimeError) -> View {
        let x = try float(view: name)
        guard x.rank == 4, x.shape[2] >= 1, x.shape[3] >= 1, x.shape[0] >= 1 else {
            throw failure(.shape(parameter: name, got: x.shape, expected: "images [n, channels, height, width]"))
        }
        return x
    }

    fileprivate func size(_ name: String) throws(RuntimeError) -> Int {
        let size = try int(name)
        guard size >= 1, size < 1 << 24 else {
            throw failure(.value(parameter: name, got: "\(size)", expected: "a size from 1 on"))
        }
        return size
    }

    fileprivate func border() throws(RuntimeError) -> rlxk_border {
        try choice("padding_mode", PaddingKind.self).kernelBorder
    }

    /// The points of an output axis between -1 and 1.
    fileprivate func normalizedGrid(_ count: Int, _ alignsCorners: Bool) throws(RuntimeError) -> View {
        let storage = try Storage(type: .float32, shape: [count])
        storage.fill(
            (0..<count).map { index -> Float in
                let i = Double(index)
                if alignsCorners { return Float(count == 1 ? 0 : 2 * i / Double(count - 1) - 1) }
                return Float((2 * i + 1) / Double(count) - 1)
            })
        return graph.constant(storage)
    }

    /// Coordinates (x, y) in the last dimension as pixels of `x`.
    fileprivate func pixels(_ coordinates: View, _ x: View) throws(RuntimeError) -> View {
        let kind = try choice("coordinates_mode", CoordinatesKind.self)
        if kind == .unnormalized { return coordinates }
        let corners = try bool("align_corners")
        var parts: [View] = []
        for (part, size) in [x.shape[3], x.shape[2]].enumerated() {
            let length = Float(corners ? size - 1 : size)
            let shift: Float = corners ? 0 : -0.5
            let value = coordinates.sliced(axis: coordinates.rank - 1, start: part, count: 1)
            parts.append(
                try kind == .zeroToOne
                    ? graph.map(RLXK_LINEAR, [value], .float32, p: length, q: shift)
                    : graph.map(RLXK_LINEAR, [value], .float32, p: length / 2, q: length / 2 + shift))
        }
        return try graph.concat(parts, axis: coordinates.rank - 1)
    }

    /// `points` are [n, h, w, 2]; the parameters say how to sample.
    fileprivate func sampled(_ x: View, _ points: View, border: rlxk_border) throws(RuntimeError) -> View {
        let kind = try choice("sampling_mode", SamplingKind.self)
        return try graph.sample(
            x, points, index: nil, border: border, isNearest: kind == .nearest, value: float("padding_value"))
    }

    // MARK: Boxes

    fileprivate func cropResize() throws(RuntimeError) -> View {
        let x = try image4("x")
        let (height, width) = (try size("target_height"), try size("target_width"))
        let isOld = has("roi")
        var boxes = try isOld ? number("roi") : number("boxes")
        var indices: View?
        if isOld {
            guard boxes.rank == 5, boxes.count == boxes.shape[0] * boxes.shape[2], [4, 5].contains(boxes.shape[2])
            else { throw failure(.shape(parameter: "roi", got: boxes.shape, expected: "[n, 1, 4 or 5, 1, 1]")) }
            boxes = boxes.dropping([1, 3, 4])
            if boxes.shape[1] == 5 {
                indices = try graph.cast(boxes.sliced(axis: 1, start: 0, count: 1).dropping([1]), to: .int32)
                boxes = boxes.sliced(axis: 1, start: 1, count: 4)
            }
        } else {
            guard boxes.rank == 2, boxes.shape[1] == 4 else {
                throw failure(.shape(parameter: "boxes", got: boxes.shape, expected: "[n, 4]"))
            }
            indices = try has("box_indices") ? self.indices("box_indices") : graph.iota(boxes.shape[0])
        }
        if let indices, indices.shape != [boxes.shape[0]] {
            throw failure(.shape(parameter: "box_indices", got: indices.shape, expected: "[\(boxes.shape[0])]"))
        }
        let points = try boxPoints(boxes, x, height, width)
        let value = try float("pad_value")
        func crops(_ index: View) throws(RuntimeError) -> View {
            try graph.sample(x, points, index: index, border: RLXK_BORDER_CUT, isNearest: false, value: value)
        }
        if let indices {
            let result = try crops(indices)
            return isOld ? result.expanded(at: [1]) : result
        }
        // Each box of every image.
        var images: [View] = []
        for image in 0..<x.shape[0] {
            let index = try graph.scalar(Float(image), .int32).broadcast(to: [boxes.shape[0]])
            images.append(try crops(index).expanded(at: [1]))
        }
        return try graph.concat(images, axis: 1)
    }

    /// The grid points of each box, [n, height, width, 2] in pixels.
    private func boxPoints(_ boxes: View, _ x: View, _ height: Int, _ width: Int) throws(RuntimeError) -> View {
        let kind = try choice("box_coordinate_mode", BoxKind.self)
        let isNormalized = try bool("normalized_coordinates")
        let scale = try float("spatial_scale")
        let values = try graph.cast(boxes, to: .float32)
        func column(_ index: Int) -> View { values.sliced(axis: 1, start: index, count: 1) }
        let heightFirst = kind == .cornersHeightFirst || kind == .centerHeightFirst
        let isCorners = kind == .cornersHeightFirst || kind == .cornersWidthFirst
        var axes: [View] = []
        for (isHeight, count, size) in [(true, height, x.shape[2]), (false, width, x.shape[3])] {
            let first = isHeight == heightFirst ? 0 : 1
            var (start, end) = (column(first), column(first + 2))
            if !isCorners {
                let half = try graph.map(RLXK_LINEAR, [end], .float32, p: 0.5)
                (start, end) = (
                    try graph.map(RLXK_SUB, [start, half], .float32), try graph.map(RLXK_ADD, [start, half], .float32)
                )
            }
            let factor = scale * (isNormalized ? Float(size - 1) : 1)
            start = try graph.map(RLXK_LINEAR, [start], .float32, p: factor)
            end = try graph.map(RLXK_LINEAR, [end], .float32, p: factor)
            axes.append(try grid(start, end, count))
        }
        let shape = [boxes.shape[0], height, width, 1]
        let rows = axes[0].expanded(at: [2, 3]).broadcast(to: shape)
        let columns = axes[1].expanded(at: [1, 3]).broadcast(to: shape)
        return try graph.concat([columns, rows], axis: 3)
    }

    /// [n, count]: where the points of an axis lie from `start` to `end`, both [n, 1]; a box may be turned around.
    private func grid(_ start: View, _ end: View, _ count: Int) throws(RuntimeError) -> View {
        let mode = try choice("sampling_mode", SamplingMode.self)
        let span = try graph.map(RLXK_SUB, [end, start], .float32)
        let length = try graph.map(RLXK_ABS, [span], .float32)
        let storage = try Storage(type: .float32, shape: [1, count])
        storage.fill((0..<count).map { Float($0) })
        let place = graph.constant(storage)
        let n = Float(count)
        // Over a box of `length` + 1 pixels, as the sampling of resize_bilinear is over an image.
        let distance: View
        switch mode {
        case .strictAlignCorners, .alignCorners:
            if count == 1 {
                distance = try graph.map(RLXK_LINEAR, [length], .float32, p: mode == .alignCorners ? 0.5 : 0)
            } else {
                let step = try graph.map(RLXK_LINEAR, [length], .float32, p: 1 / (n - 1))
                distance = try graph.map(RLXK_MUL, [place, step], .float32)
            }
        case .standard:
            let step = try graph.map(RLXK_LINEAR, [length], .float32, p: 1 / n, q: 1 / n)
            distance = try graph.map(RLXK_MUL, [place, step], .float32)
        case .offsetCorners:
            let floor = try graph.map(RLXK_MAX, [length, graph.scalar(1, .float32)], .float32)
            let step = try graph.map(RLXK_LINEAR, [floor], .float32, p: 1 / n)
            let middle = try graph.map(RLXK_LINEAR, [place], .float32, p: 1, q: 0.5)
            distance = try graph.map(RLXK_MUL, [middle, step], .float32)
        case .unalignCorners:
            let step = try graph.map(RLXK_LINEAR, [length], .float32, p: 1 / n, q: 1 / n)
            let middle = try graph.map(RLXK_LINEAR, [place], .float32, p: 1, q: 0.5)
            distance = try graph.map(
                RLXK_LINEAR, [graph.map(RLXK_MUL, [middle, step], .float32)], .float32, p: 1, q: -0.5)
        }
        let zero = try graph.scalar(0, .float32)
        let inside = try graph.map(RLXK_MIN, [graph.map(RLXK_MAX, [distance, zero], .float32), length], .float32)
        let sign = try graph.map(RLXK_SIGN, [span], .float32)
        return try graph.map(RLXK_ADD, [start, graph.map(RLXK_MUL, [sign, inside], .float32)], .float32)
    }
}

extension GraphBuilder {
    /// [n, channels, h, w] of `points` [n, h, w, 2].
    fileprivate func sample(
        _ x: View, _ points: View, index: View?, border: rlxk_border, isNearest: Bool, value: Float
    ) throws(RuntimeError) -> View {
        let (samples, height, width) = (points.shape[0], points.shape[1], points.shape[2])
        let result = try empty(.float32, [samples, x.shape[1], height, width])
        if result.count == 0 { return try cast(result, to: x.type) }
        var reads = [try dense(cast(x, to: .float32)), try dense(points)]
        if let index { reads.append(try dense(index)) }
        add(
            .kernel(
                Kernel(
                    run: rlxk_sample_run, reads: reads, writes: [result], nanoseconds: Double(result.count) * 4
                ) { arguments, memory in
                    UnsafeRawPointer(
                        arguments.store(
                            rlxk_sample(
                                x: UnsafePointer(memory.read(0).assumingMemoryBound(to: Float.self)),
                                points: UnsafePointer(memory.read(1).assumingMemoryBound(to: Float.self)),
                                index: index == nil ? nil : memory.indices(2),
                                out: memory.write(0).assumingMemoryBound(to: Float.self), images: Int64(x.shape[0]),
                                channels: Int64(x.shape[1]), height: Int64(x.shape[2]), width: Int64(x.shape[3]),
                                samples: Int64(samples), count: Int64(height * width), border: border,
                                nearest: isNearest ? 1 : 0, value: value)))
                }))
        return try cast(result, to: x.type)
    }
}
