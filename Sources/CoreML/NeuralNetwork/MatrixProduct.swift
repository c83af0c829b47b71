// Products of matrices by the runtime's kernel, for training. Knows no layers.
import RLXKernels

/// A matrix in memory; strides are counted in elements.
struct MatrixView {
    let base: UnsafePointer<Float>
    let rows: Int
    let columns: Int
    let rowStride: Int
    let columnStride: Int

    /// Rows one after the other.
    init(_ base: UnsafePointer<Float>, _ rows: Int, _ columns: Int) {
        self.init(base, rows, columns, columns, 1)
    }

    private init(_ base: UnsafePointer<Float>, _ rows: Int, _ columns: Int, _ rowStride: Int, _ columnStride: Int) {
        (self.base, self.rows, self.columns) = (base, rows, columns)
        (self.rowStride, self.columnStride) = (rowStride, columnStride)
    }

    var transposed: MatrixView { MatrixView(base, columns, rows, columnStride, rowStride) }
}

/// Memory of the kernel's that products of one task share.
final class MatrixWorkspace {
    private var memory: UnsafeMutableRawPointer?
    private var count = 0

    deinit { memory?.deallocate() }

    /// c = a b, or c += a b, where c has its rows one after the other.
    func multiply(
        _ a: MatrixView, _ b: MatrixView, into c: UnsafeMutablePointer<Float>, accumulating: Bool = false
    ) {
        var product = rlxk_gemm()
        (product.m, product.n, product.k) = (Int64(a.rows), Int64(b.columns), Int64(a.columns))
        (product.a, product.a_row, product.a_col) = (a.base, Int64(a.rowStride), Int64(a.columnStride))
        (product.b, product.b_row, product.b_col) = (b.base, Int64(b.rowStride), Int64(b.columnStride))
        (product.c, product.c_row) = (c, Int64(b.columns))
        product.batch = (1, 1, 1)
        product.alpha = 1
        product.accumulate = accumulating ? 1 : 0
        product.workspace = floats(rlxk_gemm_workspace(&product, 1))
        rlxk_gemm_run(&product, 0, 1)
    }

    private func floats(_ needed: Int) -> UnsafeMutablePointer<Float>? {
        if needed > count {
            memory?.deallocate()
            memory = .allocate(byteCount: needed * MemoryLayout<Float>.size, alignment: 64)
            count = needed
        }
        return memory?.assumingMemoryBound(to: Float.self)
    }
}
