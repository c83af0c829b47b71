// Turns a matrix product into launches of the product kernel.
import RLXKernels

enum ProductEncoder {
    private static let batchAxes = 3

    /// `addBuffer` makes a buffer of so many floats.
    static func launches(
        _ product: Product, _ place: RuntimeError.Place, workers: Int, addBuffer: (Int) -> Int
    ) -> [Launch] {
        if product.c.count == 0 { return [] }
        var gemm = single(product)
        var batch = Batch(product)
        batch.mergeIntoRows(&gemm)
        // What does not fit into the kernel's batch axes becomes launches of their own.
        let outer = max(0, batch.sizes.count - batchAxes)
        let inner = Array(batch.sizes[outer...])
        let padding = Array(repeating: 1, count: batchAxes - inner.count)
        let zeros = Array(repeating: 0, count: padding.count)
        fill(&gemm.batch, padding + inner)
        fill(&gemm.a_batch, zeros + batch.a[outer...])
        fill(&gemm.b_batch, zeros + batch.b[outer...])
        fill(&gemm.c_batch, zeros + batch.c[outer...])

        var launches: [Launch] = []
        let count = batch.sizes[..<outer].reduce(1, *)
        for index in 0..<count {
            var rest = index
            var shift = Shift()
            for axis in (0..<outer).reversed() {
                let position = rest % batch.sizes[axis]
                rest /= batch.sizes[axis]
                shift.a += position * batch.a[axis]
                shift.b += position * batch.b[axis]
                shift.c += position * batch.c[axis]
            }
            launches.append(launch(gemm, product, place, shift, workers, addBuffer))
        }
        if product.isSymmetric { launches.append(mirror(product, place)) }
        return launches
    }

    /// The product without its batches and addresses.
    private static func single(_ product: Product) -> rlxk_gemm {
        let rank = product.c.rank
        var gemm = rlxk_gemm()
        gemm.m = Int64(product.c.shape[rank - 2])
        gemm.n = Int64(product.c.shape[rank - 1])
        gemm.k = Int64(product.a.shape[rank - 1])
        gemm.a_row = Int64(product.a.strides[rank - 2])
        gemm.a_col = Int64(product.a.strides[rank - 1])
        gemm.b_row = Int64(product.b.strides[rank - 2])
        gemm.b_col = Int64(product.b.strides[rank - 1])
        gemm.c_row = Int64(product.c.strides[rank - 2])
        gemm.alpha = 1
        gemm.activation = product.activation.code
        gemm.clip = product.activation.bounds
        gemm.symmetric = product.isSymmetric ? 1 : 0
        return gemm
    }

    /// How far one launch's operands lie behind the product's.
    private struct Shift {
        var (a, b, c) = (0, 0, 0)
    }

    private static func launch(
        _ gemm: rlxk_gemm, _ product: Product, _ place: RuntimeError.Place, _ shift: Shift, _ workers: Int,
        _ addBuffer: (Int) -> Int
    ) -> Launch {
        let workspace = withUnsafePointer(to: gemm) { rlxk_gemm_workspace($0, Int32(workers)) }
        let buffer = workspace > 0 ? addBuffer(workspace) : nil
        let batches = Double(gemm.batch.0) * Double(gemm.batch.1) * Double(gemm.batch.2)
        let flops = 2 * Double(gemm.m) * Double(gemm.n) * Double(gemm.k) * batches
        return Launch(
            run: rlxk_gemm_run, places: [place],
            reads: Set([product.a, product.b, product.bias, product.gate].compactMap { $0?.buffer }),
            writes: Set([product.c.buffer] + (buffer.map { [$0] } ?? [])),
            isSerial: flops / 80 < Launch.serialNanoseconds
        ) { arguments, memory in
            var gemm = gemm
            let a = memory[product.a].assumingMemoryBound(to: Float.self)
            let b = memory[product.b].assumingMemoryBound(to: Float.self)
            gemm.a = UnsafePointer(a + shift.a)
            gemm.b = UnsafePointer(b + shift.b)
            gemm.c = memory[product.c].assumingMemoryBound(to: Float.self) + shift.c
            if let bias = product.bias { gemm.bias = UnsafePointer(memory[bias].assumingMemoryBound(to: Float.self)) }
            if let gate = product.gate {
                gemm.gate = UnsafePointer(memory[gate].assumingMemoryBound(to: Float.self) + shift.c)
            }
            if let buffer { gemm.workspace = memory.addresses[buffer].assumingMemoryBound(to: Float.self) }
            return UnsafeRawPointer(arguments.store(gemm))
        }
    }

    private static func mirror(_ product: Product, _ place: RuntimeError.Place) -> Launch {
        let c = product.c
        let size = c.shape[c.rank - 1]
        return Launch(
            run: rlxk_mirror_run, places: [place], reads: [c.buffer], writes: [c.buffer],
            isSerial: Double(size * size) * 0.1 < Launch.serialNanoseconds
        ) { arguments, memory in
            let values = memory[c].assumingMemoryBound(to: Float.self)
            let mirror = rlxk_mirror(c: values, n: Int64(size), row: Int64(c.strides[c.rank - 2]))
            return UnsafeRawPointer(arguments.store(mirror))
        }
    }

    /// The batch dimensions of a product, as few as the strides allow.
    private struct Batch {
        var sizes: [Int] = []
        var a: [Int] = []
        var b: [Int] = []
        var c: [Int] = []

        init(_ product: Product) {
            for axis in 0..<(product.c.rank - 2) where product.c.shape[axis] != 1 {
                let size = product.c.shape[axis]
                let strides = (product.a.strides[axis], product.b.strides[axis], product.c.strides[axis])
                if let last = sizes.indices.last,
                    a[last] == strides.0 * size, b[last] == strides.1 * size, c[last] == strides.2 * size
                {
                    sizes[last] *= size
                    (a[last], b[last], c[last]) = strides
                } else {
                    sizes.append(size)
                    a.append(strides.0)
                    b.append(strides.1)
                    c.append(strides.2)
                }
            }
        }

        /// Batches that share B and follow one another in A and C are rows of one product.
        mutating func mergeIntoRows(_ gemm: inout rlxk_gemm) {
            while let last = sizes.indices.last, b[last] == 0,
                gemm.m == 1 || a[last] == Int(gemm.a_row * gemm.m) && c[last] == Int(gemm.c_row * gemm.m)
            {
                if gemm.m == 1 {
                    gemm.a_row = Int64(a[last])
                    gemm.c_row = Int64(c[last])
                }
                gemm.m *= Int64(sizes[last])
                sizes.removeLast()
                a.removeLast()
                b.removeLast()
                c.removeLast()
            }
        }
    }
}
