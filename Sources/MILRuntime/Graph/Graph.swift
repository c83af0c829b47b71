// What a program is to the planner: buffers, and the work that fills them, in order. Knows nothing of MIL's operations.
import RLXKernels

struct Buffer {
    enum Origin {
        /// Written by nodes.
        case computed
        /// Bound from outside: a feed or a resident.
        case input(String)
        /// Never changes; `owner` keeps the memory.
        case constant(UnsafeRawPointer, owner: AnyObject)
    }

    var type: ElementType
    var count: Int
    var origin: Origin

    var isConstant: Bool {
        if case .constant = origin { true } else { false }
    }

    var isComputed: Bool {
        if case .computed = origin { true } else { false }
    }

    var byteCount: Int { count * type.size }
}

/// One piece of work. Nodes run in order, or in any order with the same reads and writes.
struct Node {
    enum Work {
        case map(Map)
        case fold(Fold)
        case product(Product)
        case convolution(Convolution)
        case kernel(Kernel)
    }

    var work: Work
    var place: RuntimeError.Place

    var isRandom: Bool {
        if case .kernel(let kernel) = work { kernel.isRandom } else { false }
    }

    var reads: [View] {
        switch work {
        case .map(let map): map.operands
        case .fold(let fold): [fold.operand]
        case .product(let product): [product.a, product.b] + [product.bias, product.gate].compactMap(\.self)
        case .convolution(let convolution): [convolution.x, convolution.weight] + (convolution.bias.map { [$0] } ?? [])
        case .kernel(let kernel): kernel.reads
        }
    }

    var writes: [View] {
        switch work {
        case .map(let map): [map.result]
        case .fold(let fold): [fold.result]
        case .product(let product): [product.c]
        case .convolution(let convolution): [convolution.result]
        case .kernel(let kernel): kernel.writes
        }
    }
}

extension Node {
    /// The same work on other buffers.
    func mappingBuffers(_ transform: (Int) -> Int) -> Node {
        mappingViews { view in
            var view = view
            view.buffer = transform(view.buffer)
            return view
        }
    }

    /// The same work on other views.
    func mappingViews(_ moved: (View) -> View) -> Node {
        var node = self
        switch work {
        case .map(var map):
            map.operands = map.operands.map(moved)
            map.result = moved(map.result)
            node.work = .map(map)
        case .fold(var fold):
            fold.operand = moved(fold.operand)
            fold.result = moved(fold.result)
            node.work = .fold(fold)
        case .product(var product):
            product.a = moved(product.a)
            product.b = moved(product.b)
            product.c = moved(product.c)
            product.bias = product.bias.map(moved)
            product.gate = product.gate.map(moved)
            node.work = .product(product)
        case .convolution(var convolution):
            convolution.x = moved(convolution.x)
            convolution.weight = moved(convolution.weight)
            convolution.result = moved(convolution.result)
            convolution.bias = convolution.bias.map(moved)
            node.work = .convolution(convolution)
        case .kernel(var kernel):
            kernel.reads = kernel.reads.map(moved)
            kernel.writes = kernel.writes.map(moved)
            node.work = .kernel(kernel)
        }
        return node
    }
}

/// One elementwise operation. Operands and result have one shape; operands may repeat (stride 0).
struct Map {
    var op: rlxk_op
    var operands: [View]
    var result: View
    var p: Float = 0
    var q: Float = 0
}

/// A reduction: dimensions of the operand in which the result has stride 0 are folded. The result has 32-bit elements.
struct Fold {
    var kind: rlxk_fold
    var operand: View
    var result: View
}

/// What a product or a convolution does to each element last.
enum Activation: Hashable {
    case none, relu
    case clip(Float, Float)

    var code: Int32 {
        switch self {
        case .none: Int32(RLXK_ACT_NONE)
        case .relu: Int32(RLXK_ACT_RELU)
        case .clip: Int32(RLXK_ACT_CLIP)
        }
    }

    var bounds: (Float, Float) {
        if case .clip(let low, let high) = self { (low, high) } else { (0, 0) }
    }
}

/// C[..., m, n] = activation(A[..., m, k] B[..., k, n] + bias[n]) where gate[..., m, n] > 0, else 0. Views are f32, with
/// equal batch dimensions.
struct Product {
    var a: View
    var b: View
    var c: View
    var bias: View?
    var activation = Activation.none
    /// Lies as C does.
    var gate: View?
    /// Whether C is the same as its transpose, to the last bit.
    var isSymmetric = false
}

/// A two-dimensional convolution or a gradient of one, over dense f32 views.
struct Convolution {
    enum Kind {
        /// result = activation(conv(x, weight) + bias[out channel])
        case forward
        /// x is the output's gradient, result the input's; with bias[in channel] and activation.
        case inputGradient
        /// weight is the output's gradient, result the kernel's.
        case weightGradient
    }

    var kind: Kind
    /// Of the convolution itself, whichever of its gradients this is.
    var shape: rlxk_conv_shape
    var x: View
    var weight: View
    var result: View
    var bias: View?
    var activation = Activation.none

    /// Multiplications and additions.
    var operations: Double {
        2 * Double(shape.batch * shape.out_height * shape.out_width) * Double(shape.out_channels)
            * Double(shape.in_channels / shape.groups * shape.kernel_height * shape.kernel_width)
    }
}

/// A call of some other C kernel.
struct Kernel {
    var run: rlxk_kernel
    var reads: [View]
    var writes: [View]
    /// An estimate of its time on one thread; short ones run on one.
    var nanoseconds: Double
    /// Scratch floats for each worker.
    var scratch = 0
    /// Whether each run writes other values, though it reads nothing new.
    var isRandom = false
    /// Stores the kernel's arguments.
    var arguments: (Arguments, KernelMemory) -> UnsafeRawPointer
}

struct Graph {
    var buffers: [Buffer] = []
    var nodes: [Node] = []
    /// What is known of buffers that hold paddings.
    var placements: [Int: Placement] = [:]
    /// Checks of indices that must pass before a run changes anything.
    var checks: [IndexCheck] = []

    /// A buffer of one element: zero when all indices are in range, else one more than the place of the first that is
    /// not.
    struct IndexCheck {
        var failure: Int
        var size: Int
        var place: RuntimeError.Place
    }

    mutating func addBuffer(_ type: ElementType, count: Int, origin: Buffer.Origin = .computed) -> Int {
        buffers.append(Buffer(type: type, count: count, origin: origin))
        return buffers.count - 1
    }

    /// Drops the nodes that none of the results depends on.
    mutating func keepLive(for results: Set<Int>) {
        var needed = results
        var live: [Node] = []
        for node in nodes.reversed() where node.writes.contains(where: { needed.contains($0.buffer) }) {
            live.append(node)
            for view in node.reads { needed.insert(view.buffer) }
        }
        nodes = live.reversed()
    }
}
