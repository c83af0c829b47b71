// Makes convolutions compute only the part of their result that is read. Programs write the gradient of a padded
// convolution as a whole transpose and a slice of it.
import RLXKernels

enum Crops {
    static func fuse(_ graph: Graph, results: Set<Int>) -> Graph {
        var graph = graph
        let readers = GraphIndex(graph, results: results).readers
        for index in graph.nodes.indices {
            guard case .convolution(let convolution) = graph.nodes[index].work, convolution.kind != .weightGradient,
                !results.contains(convolution.result.buffer)
            else { continue }
            let readers = readers[convolution.result.buffer] ?? []
            guard let part = part(convolution.result, read: readers.map { graph.nodes[$0] }) else { continue }
            let cropped = crop(convolution, to: part, buffer: graph.addBuffer(.float32, count: part.count))
            graph.nodes[index].work = .convolution(cropped)
            for reader in readers {
                graph.nodes[reader] = graph.nodes[reader].mappingViews { $0 == part ? cropped.result : $0 }
            }
        }
        return graph
    }

    /// The one view of `whole` that all its readers take, if it leaves out some rows or columns.
    private static func part(_ whole: View, read readers: [Node]) -> View? {
        var part: View?
        for reader in readers {
            // The arguments of other kernels were made for the view.
            if case .kernel = reader.work { return nil }
            for view in reader.reads where view.buffer == whole.buffer {
                guard part == nil || part == view else { return nil }
                part = view
            }
        }
        guard let part, part.strides == whole.strides, part.shape != whole.shape,
            part.shape.prefix(2) == whole.shape.prefix(2), !part.shape.contains(0)
        else { return nil }
        return part
    }

    private static func crop(_ whole: Convolution, to part: View, buffer: Int) -> Convolution {
        let skipped = part.offset - whole.result.offset
        let width = whole.result.shape.last!
        var convolution = whole
        convolution.result = View(buffer: buffer, type: .float32, shape: part.shape)
        convolution.shape.skip(
            rows: Int64(skipped / width), columns: Int64(skipped % width), of: whole.kind,
            height: Int64(part.rank > 3 ? part.shape[2] : 1), width: Int64(part.shape.last!))
        return convolution
    }
}

extension rlxk_conv_shape {
    /// Leaves `height` x `width` of the result after so many rows and columns.
    fileprivate mutating func skip(
        rows: Int64, columns: Int64, of kind: Convolution.Kind, height: Int64, width: Int64
    ) {
        if kind == .inputGradient {
            pad = (pad.0 + rows, pad.1 + columns)
            (in_height, in_width) = (height, width)
        } else {
            pad = (pad.0 - rows * stride.0, pad.1 - columns * stride.1)
            (out_height, out_width) = (height, width)
        }
    }
}
