// Named tensors that stay between steps and are shared by sessions. Knows nothing of programs.

import MILRuntime

/// Weights and optimizer state by name. Sessions that share a store see each other's updates; calls on a store
/// and runs of its sessions take turns.
public final class TensorStore: @unchecked Sendable {
    private let lock = CallLock("store")
    private var tensors: [String: Resident] = [:]

    /// Holds nothing yet.
    public init() {}

    /// Makes the tensor if it is new; otherwise it must have that dtype and shape. Copies.
    package func put(_ name: String, dtype: DType, _ value: StridedBytes) throws(RLXError) {
        try withLock { () throws(RLXError) in
            guard let tensor = tensors[name] else {
                let made = try Resident(Feature(name: name, dtype: dtype, shape: value.shape))
                made.current.write(value)
                return tensors[name] = made
            }
            try tensor.feature.check(dtype: dtype, shape: value.shape)
            tensor.current.write(value)
        }
    }

    /// Copies the tensor to the view, which must have its dtype and shape.
    package func get(_ name: String, dtype: DType, into value: StridedBytes) throws(RLXError) {
        try lock.reading { () throws(RLXError) in
            guard let tensor = tensors[name] else { throw .noSuchTensor(name) }
            try tensor.feature.check(dtype: dtype, shape: value.shape)
            tensor.current.read(into: value)
        }
    }

    /// Makes the tensor if it is new; otherwise it must have the same dtype and shape.
    public func put(_ name: String, _ tensor: Tensor) throws(RLXError) {
        try tensor.withView { (view) throws(RLXError) in try put(name, dtype: tensor.dtype, view) }
    }

    /// A copy of the tensor of that name.
    public func get(_ name: String) throws(RLXError) -> Tensor {
        try lock.reading { () throws(RLXError) in
            guard let tensor = tensors[name] else { throw .noSuchTensor(name) }
            return Tensor(copying: tensor.current.bytes, dtype: tensor.feature.dtype, shape: tensor.feature.shape)
        }
    }

    /// What is in the store.
    public var names: [String] { lock.waiting { tensors.keys.sorted() } }

    func resident(_ name: String) -> Resident? { lock.waiting { tensors[name] } }

    func withLock<R>(_ body: () throws(RLXError) -> R) throws(RLXError) -> R { try lock.withLock(body) }

    /// For what only looks.
    func waiting<R>(_ body: () -> R) -> R { lock.waiting(body) }
}

/// One tensor of a store. The store's lock guards it.
///
/// The CPU executor updates `home` in place. Core ML must never write a buffer that the same call reads, so its
/// executor writes `spare` and turns the two around.
final class Resident {
    let feature: Feature
    let home: Storage
    private var spareStorage: Storage?
    private(set) var isHome = true

    init(_ feature: Feature) throws(RLXError) {
        self.feature = feature
        home = try Storage.make(feature)
    }

    /// The buffer that holds the value.
    var current: Storage { isHome ? home : spareStorage ?? home }

    /// The buffer that does not.
    func spare() throws(RLXError) -> Storage {
        if let spareStorage { return isHome ? spareStorage : home }
        let made = try Storage.make(feature)
        spareStorage = made
        return made
    }

    /// The spare buffer's content becomes the value.
    func turn() {
        guard spareStorage != nil else { return }
        isHome.toggle()
    }

    /// Puts the value into `home`.
    func bringHome() {
        guard !isHome else { return }
        home.bytes.copyMemory(from: UnsafeRawBufferPointer(current.bytes))
        isHome = true
    }
}

extension Feature {
    package func check(dtype: DType, shape: [Int]) throws(RLXError) {
        guard dtype == self.dtype else { throw .dtypeMismatch(name, expected: self.dtype, got: dtype) }
        guard shape == self.shape else { throw .shapeMismatch(name, expected: self.shape, got: shape) }
    }
}

extension Storage {
    static func make(_ feature: Feature) throws(RLXError) -> Storage {
        do {
            return try Storage(type: feature.dtype.element, shape: feature.shape)
        } catch {
            if case .invalid = error { throw .tooLarge(feature.shape) }
            throw RLXError(error)
        }
    }

    /// Fills the buffer from a view of its size.
    func write(_ view: StridedBytes) {
        if let base = bytes.baseAddress { view.copy(to: base) }
    }

    /// Copies the buffer to a view of its size.
    func read(into view: StridedBytes) {
        if let base = bytes.baseAddress { view.copy(from: base) }
    }
}
