// What a step of a plan does, counted before it runs. Knows nothing of kernels and time.
import RLXKernels

/// One step: the operations that it does, its arithmetic, and the memory that it must touch.
struct StepCost {
    var places: [RuntimeError.Place] = []
    /// Of products, convolutions, folds and elementwise work; copies and other kernels count none.
    var flops = 0.0
    /// Each value that is read from outside the step once, and each that is stored.
    var bytes = 0

    init(_ nodes: [Node], storing isStored: (Int) -> Bool = { _ in true }) {
        let written = Set(nodes.flatMap { $0.writes.map(\.buffer) })
        var read: [Int: Int] = [:]
        for node in nodes {
            if let fused = node.fusedWork, !places.contains(fused) { places.append(fused) }
            if !places.contains(node.place) { places.append(node.place) }
            flops += node.flops
            for view in node.reads where !written.contains(view.buffer) {
                read[view.buffer] = max(read[view.buffer, default: 0], view.distinctBytes)
            }
            for view in node.writes where isStored(view.buffer) { bytes += view.distinctBytes }
        }
        bytes += read.values.reduce(0, +)
    }
}

extension Node {
    /// A product or convolution that stands under the name of the operation that was fused into it.
    fileprivate var fusedWork: RuntimeError.Place? {
        guard case .operation(let type, _) = place, ["relu", "relu6", "clip", "add", "select"].contains(type) else {
            return nil
        }
        switch work {
        case .product: return .operation(type: "matmul", output: "")
        case .convolution: return .operation(type: "conv", output: "")
        case .map, .fold, .kernel: return nil
        }
    }

    fileprivate var flops: Double {
        switch work {
        case .map(let map): map.op == RLXK_COPY ? 0 : Double(map.result.count)
        case .fold(let fold): Double(fold.operand.count)
        case .product(let product): 2 * Double(product.c.count) * Double(product.a.shape.last ?? 0)
        case .convolution(let convolution): convolution.operations
        case .kernel: 0
        }
    }
}

extension View {
    /// Elements that are repeated by a stride of 0 lie in memory once.
    fileprivate var distinctBytes: Int {
        zip(shape, strides).reduce(type.size) { $1.1 == 0 && $1.0 > 0 ? $0 : $0 * $1.0 }
    }
}
