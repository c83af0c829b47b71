// Training of the layers with weights: inner products and convolutions, as products of matrices.

/// y = x W' + b
final class ProductTraining: TrainingLayer {
    private let lead: Int
    private let input: Int
    private let output: Int
    private let weights: TrainedParameter
    private let bias: TrainedParameter?
    private let workspace = MatrixWorkspace()
    private var x: [Float] = []

    init(_ name: String, lead: Int, input: Int, output: Int, weights: [Float], bias: [Float]?) {
        (self.lead, self.input, self.output) = (lead, input, output)
        self.weights = TrainedParameter(layer: name, isBias: false, shape: [output, input], values: weights)
        self.bias = bias.map { TrainedParameter(layer: name, isBias: true, shape: [output], values: $0) }
    }

    var parameters: [TrainedParameter] { [weights] + (bias.map { [$0] } ?? []) }

    func forward(_ x: [Float], samples: Int) -> [Float] {
        self.x = x
        let rows = samples * lead
        let start = bias?.values ?? Array(repeating: 0, count: output)
        var y = [Float](repeating: 0, count: rows * output)
        for index in y.indices { y[index] = start[index % output] }
        withMatrices(x, rows, input, weights.values, output, input) { x, w in
            y.withUnsafeMutablePointer { workspace.multiply(x, w.transposed, into: $0, accumulating: true) }
        }
        return y
    }

    func backward(_ gradient: [Float], samples: Int) -> [Float] {
        let rows = samples * lead
        var back = [Float](repeating: 0, count: rows * input)
        withMatrices(gradient, rows, output, weights.values, output, input) { g, w in
            back.withUnsafeMutablePointer { workspace.multiply(g, w, into: $0) }
        }
        withMatrices(gradient, rows, output, x, rows, input) { g, x in
            weights.gradient.withUnsafeMutablePointer { workspace.multiply(g.transposed, x, into: $0) }
        }
        bias?.gradient = sums(of: gradient, period: output, run: 1)
        return back
    }
}

/// Each image's windows as the columns of a matrix, group by group.
final class ConvolutionTraining: TrainingLayer {
    private let windows: NetworkWindows
    private let groups: Int
    private let weights: TrainedParameter
    private let bias: TrainedParameter?
    private let workspace = MatrixWorkspace()
    /// Place in a plane and place in the columns of each element of each window.
    private let elements: [(inside: Int, column: Int)]
    private var x: [Float] = []

    init(_ name: String, _ windows: NetworkWindows, groups: Int, weights: [Float], bias: [Float]?) {
        self.windows = windows
        self.groups = groups
        let channels = windows.output[0]
        self.weights = TrainedParameter(
            layer: name, isBias: false, shape: [channels, windows.input[0] / groups] + windows.kernel, values: weights)
        self.bias = bias.map { TrainedParameter(layer: name, isBias: true, shape: [channels], values: $0) }
        var elements: [(Int, Int)] = []
        windows.forEachElement { out, tap, inside in elements.append((inside, tap * windows.outputPlane + out)) }
        self.elements = elements
    }

    var parameters: [TrainedParameter] { [weights] + (bias.map { [$0] } ?? []) }

    private var outputs: Int { windows.output[0] / groups }
    private var inputs: Int { windows.input[0] / groups }
    private var depth: Int { inputs * windows.kernel[0] * windows.kernel[1] }
    private var kernelPlane: Int { windows.kernel[0] * windows.kernel[1] * windows.outputPlane }

    /// Calls the body for each image and group, with where its inputs, its outputs and its weights begin.
    private func forEachPart(_ samples: Int, _ body: (Int, Int, Int) -> Void) {
        for part in 0..<samples * windows.lead * groups {
            body(
                part * inputs * windows.inputPlane, part * outputs * windows.outputPlane,
                part % groups * outputs * depth)
        }
    }

    /// The columns of the inputs that begin there; what lies outside of the image stays zero.
    private func unfold(_ x: UnsafePointer<Float>, into columns: UnsafeMutablePointer<Float>) {
        for channel in 0..<inputs {
            let (plane, rows) = (x + channel * windows.inputPlane, columns + channel * kernelPlane)
            for element in elements { rows[element.column] = plane[element.inside] }
        }
    }

    private func fold(_ columns: UnsafePointer<Float>, addingTo x: UnsafeMutablePointer<Float>) {
        for channel in 0..<inputs {
            let (plane, rows) = (x + channel * windows.inputPlane, columns + channel * kernelPlane)
            for element in elements { plane[element.inside] += rows[element.column] }
        }
    }

    func forward(_ x: [Float], samples: Int) -> [Float] {
        self.x = x
        let plane = windows.outputPlane
        let start = bias?.values ?? Array(repeating: 0, count: windows.output[0])
        var y = [Float](repeating: 0, count: samples * windows.lead * windows.output[0] * plane)
        for index in y.indices { y[index] = start[index / plane % windows.output[0]] }
        var columns = [Float](repeating: 0, count: depth * plane)
        forEachPart(samples) { input, output, weight in
            x.withUnsafePointer { unfold($0 + input, into: &columns) }
            withPointers(columns, weights.values) { columns, w in
                y.withUnsafeMutablePointer {
                    workspace.multiply(
                        MatrixView(w + weight, outputs, depth), MatrixView(columns, depth, plane), into: $0 + output,
                        accumulating: true)
                }
            }
        }
        return y
    }

    func backward(_ gradient: [Float], samples: Int) -> [Float] {
        let plane = windows.outputPlane
        var back = [Float](repeating: 0, count: x.count)
        var inWeights = [Float](repeating: 0, count: weights.values.count)
        var columns = [Float](repeating: 0, count: depth * plane)
        var inColumns = columns
        forEachPart(samples) { input, output, weight in
            x.withUnsafePointer { unfold($0 + input, into: &columns) }
            withPointers(gradient, weights.values) { g, w in
                let part = MatrixView(g + output, outputs, plane)
                inWeights.withUnsafeMutablePointer { inWeights in
                    columns.withUnsafePointer { columns in
                        workspace.multiply(
                            part, MatrixView(columns, depth, plane).transposed, into: inWeights + weight,
                            accumulating: true)
                    }
                }
                workspace.multiply(MatrixView(w + weight, outputs, depth).transposed, part, into: &inColumns)
            }
            back.withUnsafeMutablePointer { fold(inColumns, addingTo: $0 + input) }
        }
        weights.gradient = inWeights
        bias?.gradient = sums(of: gradient, period: windows.output[0], run: plane)
        return back
    }
}

/// Of the runs that belong to each of `period` channels.
private func sums(of values: [Float], period: Int, run: Int) -> [Float] {
    var sums = [Float](repeating: 0, count: period)
    for start in stride(from: 0, to: values.count, by: run) {
        sums[start / run % period] += values[start..<start + run].reduce(0, +)
    }
    return sums
}

private func withPointers(
    _ a: [Float], _ b: [Float], _ body: (UnsafePointer<Float>, UnsafePointer<Float>) -> Void
) {
    a.withUnsafeBufferPointer { a in
        b.withUnsafeBufferPointer { b in
            if let a = a.baseAddress, let b = b.baseAddress { body(a, b) }
        }
    }
}

private func withMatrices(
    _ a: [Float], _ rowsOfA: Int, _ columnsOfA: Int, _ b: [Float], _ rowsOfB: Int, _ columnsOfB: Int,
    _ body: (MatrixView, MatrixView) -> Void
) {
    withPointers(a, b) { body(MatrixView($0, rowsOfA, columnsOfA), MatrixView($1, rowsOfB, columnsOfB)) }
}

extension [Float] {
    fileprivate func withUnsafePointer(_ body: (UnsafePointer<Float>) -> Void) {
        withUnsafeBufferPointer { if let base = $0.baseAddress { body(base) } }
    }

    fileprivate mutating func withUnsafeMutablePointer(_ body: (UnsafeMutablePointer<Float>) -> Void) {
        withUnsafeMutableBufferPointer { if let base = $0.baseAddress { body(base) } }
    }
}
