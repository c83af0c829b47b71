// Compressed constants: quantised, palettised and sparse weights, made dense when a program is loaded.
import RLXKernels

let compressionRules: [OperationRule] = [
    OperationRule("constexpr_cast", ["source_val": .required, "output_dtype": .required]) {
        (call) throws(RuntimeError) in
        let name = try call.string("output_dtype")
        guard let type = ElementType(name: name) else { throw .unsupported(.type(name), call.place) }
        return try call.graph.cast(call.constant("source_val"), to: type)
    },
    OperationRule(
        "constexpr_affine_dequantize",
        ["quantized_data": .required, "zero_point": .required, "scale": .required, "axis": .required]
    ) { (call) throws(RuntimeError) in
        let data = try call.constant("quantized_data")
        let axis = try call.axis(rank: max(data.rank, 1))
        let scale = try call.along(axis, "scale", data)
        let zero = try call.along(axis, "zero_point", data)
        return try call.graph.shiftScale(data, scale, zero)
    },
    OperationRule(
        "constexpr_blockwise_shift_scale", ["data": .required, "scale": .required, "offset": .absent]
    ) { (call) throws(RuntimeError) in
        try call.blockwiseShiftScale(call.constant("data"))
    },
    OperationRule(
        "constexpr_lut_to_dense",
        ["indices": .required, "lut": .required, "shape": .absent, "vector_axis": .absent]
    ) { (call) throws(RuntimeError) in
        let lut = try call.constant("lut")
        if call.has("shape") {
            guard lut.rank == 1 else {
                throw call.failure(.rank(parameter: "lut", got: lut.rank, expected: "1"))
            }
            let indices = try call.unpacked("indices", shape: call.ints("shape"), entries: lut.count)
            return try call.graph.gather(lut, call.graph.cast(indices, to: .int32), axis: 0, batchDims: 0)
        }
        return try call.lookUp(call.constant("indices"), lut)
    },
    OperationRule(
        "constexpr_sparse_to_dense", ["nonzero_data": .required, "mask": .required, "shape": .absent]
    ) { (call) throws(RuntimeError) in
        let mask =
            try call.has("shape")
            ? call.unpacked("mask", shape: call.ints("shape"), entries: 2) : call.constant("mask")
        return try call.spread(call.constant("nonzero_data"), over: mask)
    },
    OperationRule(
        "constexpr_lut_to_sparse",
        ["indices_mask": .required, "indices_nonzero_data": .required, "lut": .required, "vector_axis": .absent],
        lower: { (call) throws(RuntimeError) in
            var mask = try call.constant("indices_mask")
            let indices = try call.spread(call.constant("indices_nonzero_data"), over: mask)
            let lut = try call.constant("lut")
            let dense = try call.lookUp(indices, lut)
            if dense.shape != mask.shape, let axis = try call.vectorAxis(rank: mask.rank) {
                mask = try call.graph.dense(call.graph.repeated(mask, lut.shape[lut.rank - 1], axis: axis))
            }
            return [mask, try call.collect(dense, where: mask)]
        }),
    OperationRule(
        "constexpr_sparse_blockwise_shift_scale",
        ["data_mask": .required, "nonzero_data": .required, "scale": .required, "offset": .absent],
        lower: { (call) throws(RuntimeError) in
            let mask = try call.constant("data_mask")
            let data = try call.spread(call.constant("nonzero_data"), over: mask)
            return [mask, try call.collect(call.blockwiseShiftScale(data), where: mask)]
        }),
]

extension Call {
    fileprivate func constant(_ name: String) throws(RuntimeError) -> View {
        let view = try view(name)
        guard graph.constantAddress(view) != nil else { throw failure(.notConstant(name)) }
        return view
    }

    /// A scalar, or a vector along `axis` of `data`, shaped to broadcast over it.
    fileprivate func along(_ axis: Int, _ name: String, _ data: View) throws(RuntimeError) -> View {
        let value = try constant(name)
        if value.rank == 0 { return value }
        guard value.rank == 1, axis < data.rank, value.count == data.shape[axis] || value.count == 1 else {
            throw failure(.shape(parameter: name, got: value.shape, expected: "one for each of axis \(axis)"))
        }
        return value.expanded(at: Array(1..<data.rank - axis))
    }

    // MARK: Blocks

    fileprivate func blockwiseShiftScale(_ data: View) throws(RuntimeError) -> View {
        let scale = try constant("scale")
        let (inner, blocks) = try blocks(of: data, as: scale.shape, "scale")
        let offset = try has("offset") ? constant("offset") : nil
        if let offset, offset.shape != scale.shape {
            throw failure(.shape(parameter: "offset", got: offset.shape, expected: "\(scale.shape), as scale"))
        }
        let result = try graph.shiftScale(
            graph.reshape(data, inner), graph.reshape(scale, blocks),
            offset.map { (view) throws(RuntimeError) in try graph.reshape(view, blocks) })
        return try graph.reshape(result, data.shape)
    }

    /// The shape of `data` with each axis that has several blocks as [blocks, size], and that of something with one
    /// element a block to broadcast over it.
    private func blocks(
        of data: View, as counts: [Int], _ parameter: String
    ) throws(RuntimeError) -> (inner: [Int], outer: [Int]) {
        guard counts.count == data.rank, zip(data.shape, counts).allSatisfy({ $1 >= 1 && $0 % $1 == 0 }) else {
            throw failure(.shape(parameter: parameter, got: counts, expected: "blocks of \(data.shape)"))
        }
        var inner: [Int] = []
        var outer: [Int] = []
        for (size, count) in zip(data.shape, counts) {
            if count > 1, count < size {
                inner += [count, size / count]
                outer += [count, 1]
            } else {
                inner.append(size)
                outer.append(count)
            }
        }
        return (inner, outer)
    }

    // MARK: Palettes

    fileprivate func vectorAxis(rank: Int) throws(RuntimeError) -> Int? {
        guard let axis = try optionalInt("vector_axis") else { return nil }
        return try normalized(axis, rank: rank, "vector_axis")
    }

    /// `lut` has a table of [entries, vector] for each block of `indices`.
    fileprivate func lookUp(_ indices: View, _ lut: View) throws(RuntimeError) -> View {
        guard lut.rank == indices.rank + 2 else {
            throw failure(.rank(parameter: "lut", got: lut.rank, expected: "\(indices.rank + 2)"))
        }
        let entries = lut.shape[indices.rank]
        let width = lut.shape[indices.rank + 1]
        let counts = Array(lut.shape.prefix(indices.rank))
        let (inner, outer) = try blocks(of: indices, as: counts, "lut")
        let tables = counts.reduce(1, *)
        let index = try graph.reshape(graph.cast(indices, to: .int32), inner)
        let firsts = try graph.map(
            RLXK_MUL_I32, [graph.reshape(graph.iota(tables), outer), graph.scalar(Float(entries), .int32)], .int32)
        let rows = try graph.map(RLXK_ADD_I32, [index, firsts], .int32)
        let vectors = try graph.gather(
            graph.reshape(lut, [tables * entries, width]), graph.reshape(rows, indices.shape), axis: 0, batchDims: 0)
        if width == 1 { return try graph.reshape(vectors, indices.shape) }
        guard let axis = try vectorAxis(rank: indices.rank) else { throw failure(.missingParameter("vector_axis")) }
        var order = Array(0..<indices.rank)
        order.insert(indices.rank, at: axis + 1)
        var shape = indices.shape
        shape[axis] *= width
        return try graph.reshape(vectors.transposed(order), shape)
    }

    /// Up to CoreML7 indices and masks are bits in bytes, as many as `entries` need.
    fileprivate func unpacked(_ name: String, shape: [Int], entries: Int) throws(RuntimeError) -> View {
        let packed = try graph.dense(constant(name))
        let width = entries <= 2 ? 1 : Int.bitWidth - (entries - 1).leadingZeroBitCount
        guard packed.type.size == 1, width <= 8, let count = elementCount(shape), count < 1 << 40,
            packed.count >= (count * width + 7) / 8, let (address, _) = graph.constantMemory(packed)
        else {
            throw failure(
                .shape(parameter: name, got: packed.shape, expected: "bytes for \(shape) of \(width) bits"))
        }
        let storage = try Storage(type: .uint8, shape: shape)
        let bytes = Array(UnsafeRawBufferPointer(start: address, count: packed.count))
        unpackBits(bytes, width: width, isSigned: false, into: storage.bytes, count: count)
        return graph.constant(storage)
    }

    // MARK: Sparsity

    /// Zeros, and the values in order where the mask is not zero.
    fileprivate func spread(_ values: View, over mask: View) throws(RuntimeError) -> View {
        let (source, chosen) = try places(values, mask)
        guard chosen.count == values.count else {
            throw failure(
                .shape(
                    parameter: "nonzero_data", got: values.shape, expected: "\(chosen.count) elements, as in the mask"))
        }
        let storage = try Storage(type: values.type, shape: mask.shape)
        let size = values.type.size
        for (index, place) in chosen.enumerated() {
            UnsafeMutableRawBufferPointer(rebasing: storage.bytes[(place * size)...]).copyMemory(
                from: UnsafeRawBufferPointer(start: source + index * size, count: size))
        }
        return graph.constant(storage)
    }

    /// The values in order where the mask is not zero.
    fileprivate func collect(_ values: View, where mask: View) throws(RuntimeError) -> View {
        let (source, chosen) = try places(values, mask)
        guard mask.count == values.count else {
            throw failure(.shape(parameter: "mask", got: mask.shape, expected: "\(values.shape)"))
        }
        let storage = try Storage(type: values.type, shape: [chosen.count])
        let size = values.type.size
        for (index, place) in chosen.enumerated() {
            UnsafeMutableRawBufferPointer(rebasing: storage.bytes[(index * size)...]).copyMemory(
                from: UnsafeRawBufferPointer(start: source + place * size, count: size))
        }
        return graph.constant(storage)
    }

    private func places(_ values: View, _ mask: View) throws(RuntimeError) -> (UnsafeRawPointer, [Int]) {
        let computed = try graph.evaluated(values)
        let bits = try graph.evaluated(mask)
        guard bits.type.size == 1 else {
            throw failure(.elementType(parameter: "mask", got: bits.type.description, expected: "uint1"))
        }
        guard let (source, _) = graph.constantMemory(computed), let (flags, _) = graph.constantMemory(bits) else {
            throw failure(.notConstant("mask"))
        }
        let bytes = UnsafeRawBufferPointer(start: flags, count: bits.count)
        return (source, bytes.indices.filter { bytes[$0] != 0 })
    }
}

extension GraphBuilder {
    /// scale * (data - offset) in the scale's type.
    fileprivate func shiftScale(_ data: View, _ scale: View, _ offset: View?) throws(RuntimeError) -> View {
        var value = try cast(data, to: .float32)
        if let offset { value = try map(RLXK_SUB, [value, cast(offset, to: .float32)], .float32) }
        return try map(RLXK_MUL, [value, scale], scale.type)
    }

    /// Each element of an axis `count` times in a row.
    fileprivate func repeated(_ view: View, _ count: Int, axis: Int) throws(RuntimeError) -> View {
        var longer = view.expanded(at: [axis + 1])
        longer.shape[axis + 1] = count
        var shape = view.shape
        shape[axis] *= count
        return try reshape(longer, shape)
    }
}
