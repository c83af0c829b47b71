// Convolutions in three dimensions, by unfolding blocks of windows.
import RLXKernels

extension GraphBuilder {
    /// Floats that an unfolded block may take: it should stay in the second-level cache beside the kernel.
    private static let blockFloats = 1 << 16

    func unfoldedConvolution(
        _ x: View, _ weight: View, _ windows: Windows, _ groups: Int, _ result: View
    ) throws(RuntimeError) -> View {
        let call = self.call(
            windows, batch: x.shape[0], groups: groups, inputs: weight.shape[1], outputs: weight.shape[0] / groups,
            depth: weight.shape[1...].reduce(1, *))
        let scratch = withUnsafePointer(to: call) { rlxk_conv_scratch($0) }
        let operations = 2 * Double(result.count) * Double(weight.shape[1...].reduce(1, *))
        add(kernel(rlxk_conv_run, call, [try dense(x), try dense(weight)], result, operations, scratch))
        return result
    }

    func unfoldedTranspose(
        _ x: View, _ weight: View, _ windows: Windows, _ groups: Int, _ result: View
    ) throws(RuntimeError) -> View {
        let call = self.call(
            windows, batch: x.shape[0], groups: groups, inputs: x.shape[1] / groups, outputs: weight.shape[1],
            depth: weight.shape[1...].reduce(1, *))
        let scratch = withUnsafePointer(to: call) { rlxk_conv_transpose_scratch($0) }
        let operations = 2 * Double(x.count) * Double(weight.shape[1...].reduce(1, *))
        add(kernel(rlxk_conv_transpose_run, call, [try dense(x), try dense(weight)], result, operations, scratch))
        return result
    }

    private func call(
        _ windows: Windows, batch: Int, groups: Int, inputs: Int, outputs: Int, depth: Int
    ) -> rlxk_conv {
        var call = rlxk_conv()
        call.window = windows.kernelWindow
        call.batch = Int64(batch)
        call.groups = Int64(groups)
        call.ci = Int64(inputs)
        call.co = Int64(outputs)
        let count = windows.count.reduce(1, *)
        // Whole vectors, and blocks of about one size.
        let fitting = max(64, Self.blockFloats / max(depth, 1) / 16 * 16)
        let blocks = (count + fitting - 1) / fitting
        call.block = Int64(((count + blocks - 1) / blocks + 15) / 16 * 16)
        return call
    }

    private func kernel(
        _ run: @escaping rlxk_kernel, _ call: rlxk_conv, _ reads: [View], _ result: View, _ operations: Double,
        _ scratch: Int
    ) -> Node.Work {
        .kernel(
            Kernel(run: run, reads: reads, writes: [result], nanoseconds: operations / 20, scratch: scratch) {
                arguments, memory in
                var call = call
                call.x = UnsafePointer(memory.read(0).assumingMemoryBound(to: Float.self))
                call.weight = UnsafePointer(memory.read(1).assumingMemoryBound(to: Float.self))
                call.out = memory.write(0).assumingMemoryBound(to: Float.self)
                call.scratch = memory.scratch.assumingMemoryBound(to: Float.self)
                call.scratch_stride = Int64(memory.scratchStride)
                return UnsafeRawPointer(arguments.store(call))
            })
    }
}
