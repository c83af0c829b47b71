// What developer tools and error screens of apps do: read descriptions, walk compute plans, tell errors apart.
@preconcurrency import CoreML

struct ModelInspector {
    struct Placement: Equatable {
        let operation: String
        let device: String
    }

    let url: URL

    @available(macOS 14.4, iOS 17.4, *)
    func placements(computeUnits: MLComputeUnits) async throws -> [Placement] {
        let configuration = MLModelConfiguration()
        configuration.computeUnits = computeUnits
        let plan = try await MLComputePlan.load(contentsOf: url, configuration: configuration)
        switch plan.modelStructure {
        case .program(let program):
            guard let main = program.functions["main"] else { return [] }
            return main.block.operations.compactMap { operation in
                guard let usage = plan.deviceUsage(for: operation) else { return nil }
                _ = plan.estimatedCost(of: operation)?.weight
                return Placement(operation: operation.operatorName, device: name(of: usage.preferred))
            }
        case .neuralNetwork(let network):
            return network.layers.map { layer in
                let device = plan.deviceUsage(for: layer).map { name(of: $0.preferred) } ?? "none"
                return Placement(operation: layer.type, device: device)
            }
        default:
            return []
        }
    }

    private func name(of device: MLComputeDevice) -> String {
        if case .neuralEngine(let engine) = device { return "ane with \(engine.totalCoreCount) cores" }
        if case .gpu = device { return "gpu" }
        if case .cpu = device { return "cpu" }
        return "other"
    }

    func summary() throws -> [String] {
        let description = try MLModel(contentsOf: url).modelDescription
        var lines = description.inputDescriptionsByName.sorted { $0.key < $1.key }.map { name, input -> String in
            guard let constraint = input.multiArrayConstraint else { return "\(name): \(input.type.rawValue)" }
            let ranges = constraint.shapeConstraint.sizeRangeForDimension.map { $0.rangeValue }
            let largest = ranges.map { NSMaxRange($0) - 1 }
            let shape = (constraint.shape as? [Int]) ?? constraint.shape.map(\.intValue)
            return "\(name): \(shape) up to \(largest)"
        }
        if let author = description.metadata[MLModelMetadataKey.author] as? String, !author.isEmpty {
            lines.append("by " + author)
        }
        return lines
    }

    static func failure(loading url: URL) -> String {
        do {
            _ = try MLModel(contentsOf: url)
            return "none"
        } catch MLModelError.io {
            return "io"
        } catch let error as MLModelError where error.code == .generic {
            return error.localizedDescription
        } catch {
            let error = error as NSError
            return error.domain == MLModelErrorDomain ? "code \(error.code)" : error.domain
        }
    }
}
