// Turns a convolution or a gradient of one into launches of the convolution kernels.
import RLXKernels

enum ConvolutionEncoder {
    /// `addBuffer` makes a buffer of so many floats.
    static func launches(
        _ convolution: Convolution, _ place: RuntimeError.Place, workers: Int, addBuffer: (Int) -> Int
    ) -> [Launch] {
        let floats = workspace(convolution, Int32(workers))
        let room = floats > 0 ? addBuffer(floats) : nil
        let reads = Set([convolution.x, convolution.weight, convolution.bias].compactMap { $0?.buffer })
        let roomSet = Set(room.map { [$0] } ?? [])
        let isSerial = convolution.operations / 40 < Launch.serialNanoseconds
        func launch(
            _ run: @escaping rlxk_kernel, reads: Set<Int>, writes: Set<Int>,
            _ arguments: @escaping (Arguments, Pointers) -> UnsafeRawPointer
        ) -> Launch {
            Launch(run: run, places: [place], reads: reads, writes: writes, isSerial: isSerial) { owner, memory in
                arguments(owner, Pointers(convolution, room, memory))
            }
        }
        let shape = convolution.shape
        let activation = convolution.activation
        let result: Set = [convolution.result.buffer]
        switch convolution.kind {
        case .forward:
            return [
                launch(rlxk_conv_forward_run, reads: reads, writes: result.union(roomSet)) { owner, at in
                    let call = rlxk_conv_forward(
                        shape: shape, x: at.x, w: at.weight, bias: at.bias, y: at.result, activation: activation.code,
                        clip: activation.bounds,
                        workspace: at.workspace)
                    return UnsafeRawPointer(owner.store(call))
                }
            ]
        case .inputGradient:
            return [
                launch(rlxk_conv_input_gradient_run, reads: reads, writes: result.union(roomSet)) { owner, at in
                    let call = rlxk_conv_input_gradient(
                        shape: shape, dy: at.x, w: at.weight, bias: at.bias, dx: at.result, activation: activation.code,
                        clip: activation.bounds,
                        workspace: at.workspace)
                    return UnsafeRawPointer(owner.store(call))
                }
            ]
        case .weightGradient:
            func call(_ owner: Arguments, _ at: Pointers) -> UnsafeRawPointer {
                var call = rlxk_conv_weight_gradient()
                call.shape = shape
                call.x = at.x
                call.dy = at.weight
                call.dw = at.result
                call.workspace = at.workspace
                rlxk_conv_weight_gradient_contiguous(&call)
                return UnsafeRawPointer(owner.store(call))
            }
            return [
                launch(rlxk_conv_weight_gradient_sums, reads: reads, writes: roomSet, call),
                launch(rlxk_conv_weight_gradient_run, reads: reads.union(roomSet), writes: result, call),
            ]
        }
    }

    private static func workspace(_ convolution: Convolution, _ workers: Int32) -> Int {
        withUnsafePointer(to: convolution.shape) { shape in
            switch convolution.kind {
            case .forward: rlxk_conv_forward_workspace(shape, workers)
            case .inputGradient: rlxk_conv_input_gradient_workspace(shape, workers)
            case .weightGradient: rlxk_conv_weight_gradient_workspace(shape, workers)
            }
        }
    }

    private struct Pointers {
        var x: UnsafePointer<Float>
        var weight: UnsafePointer<Float>
        var bias: UnsafePointer<Float>?
        var result: UnsafeMutablePointer<Float>
        var workspace: UnsafeMutablePointer<Float>?

        init(_ convolution: Convolution, _ room: Int?, _ memory: Memory) {
            func floats(_ view: View) -> UnsafeMutablePointer<Float> {
                memory[view].assumingMemoryBound(to: Float.self)
            }
            x = UnsafePointer(floats(convolution.x))
            weight = UnsafePointer(floats(convolution.weight))
            bias = convolution.bias.map { UnsafePointer(floats($0)) }
            result = floats(convolution.result)
            workspace = room.map { memory.addresses[$0].assumingMemoryBound(to: Float.self) }
        }
    }
}
