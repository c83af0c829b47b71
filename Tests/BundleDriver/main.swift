// A training bundle driven from another program, for tests: one JSON request a line, one answer a line.

import Foundation
import RLX

struct Request: Decodable {
    let call: String
    var path: String?
    var to: String?
    var weight: Double?
    var name: String?
    var epochs: Int?
    var accumulate: Int?
    var schedule: Schedule?
    var averages: Bool?
}

struct Answer: Encodable {
    /// Numbers as text, which JSON cannot spell when they are not finite.
    var numbers: [String: String] = [:]
    var error: String?
    var message: String?
}

func tensors(_ path: String) throws -> [String: Tensor] {
    try SafeTensors(contentsOf: URL(fileURLWithPath: path)).tensors
}

func write(_ tensors: [String: Tensor], to path: String) throws {
    try SafeTensors(tensors: tensors).write(to: URL(fileURLWithPath: path))
}

/// Batches `0/x`, `0/y`, `1/x`, ... of one file, in order.
func batches(_ path: String) throws -> [Batch] {
    var numbered: [Int: Batch] = [:]
    for (name, tensor) in try tensors(path) {
        let parts = name.split(separator: "/", maxSplits: 1).map(String.init)
        if let number = Int(parts[0]) { numbered[number, default: [:]][parts[1]] = tensor }
    }
    return numbered.sorted { $0.key < $1.key }.map(\.value)
}

func answer(_ request: Request, _ session: TrainingSession) async throws -> [String: Double] {
    let path = request.path ?? ""
    switch request.call {
    case "step":
        let report = try await session.step(tensors(path))
        return report.outputs.merging(["loss": report.loss, "skipped": report.skipped ? 1 : 0]) { $1 }
    case "accumulate": return ["loss": try await session.accumulate(tensors(path), weight: request.weight ?? 1)]
    case "step_accumulated":
        let count = try await session.stepAccumulated()
        return ["count": Double(count), "loss": await session.lastReport?.loss ?? .nan]
    case "gradients":
        let (loss, gradients) = try await session.gradients(tensors(path))
        try write(gradients, to: request.to ?? "")
        return ["loss": loss]
    case "apply_gradients": return ["applied": try await session.applyGradients(tensors(path)) ? 1 : 0]
    case "evaluate": return ["loss": try await session.evaluate(tensors(path))]
    case "predict": try await write(session.predict(tensors(path)), to: request.to ?? "")
    case "params": try await write(session.parameters(), to: request.to ?? "")
    case "state": try await write(session.state(of: request.name ?? ""), to: request.to ?? "")
    case "averages": try await write(session.averages(), to: request.to ?? "")
    case "set_params": try await session.setParameters(tensors(path))
    case "save": try await session.save(to: URL(fileURLWithPath: path))
    case "restore": try await session.restore(from: URL(fileURLWithPath: path))
    case "export":
        try await session.export(to: URL(fileURLWithPath: path), averages: request.averages ?? false)
    case "set_schedule": if let schedule = request.schedule { try await session.setSchedule(schedule) }
    case "lr":
        return [
            "lr": try await session.learningRate(), "steps": Double(await session.steps),
            "scale": await session.lossScale,
        ]
    case "fit":
        let options = FitOptions(epochs: request.epochs ?? 1, accumulate: request.accumulate ?? 1)
        let history = try await session.fit(try batches(path), options: options)
        return ["last": history.losses.last ?? .nan, "mean": history.epochs.last?.loss ?? .nan]
    default: throw RLXError(.invalidArgument, "no call '\(request.call)'")
    }
    return [:]
}

let encoder = JSONEncoder()
encoder.outputFormatting = [.sortedKeys]
var session: TrainingSession?
while let line = readLine() {
    var result = Answer()
    do {
        let request = try JSONDecoder().decode(Request.self, from: Data(line.utf8))
        if request.call == "open" {
            session = try await TrainingSession.open(URL(fileURLWithPath: request.path ?? ""))
        } else if let session {
            result.numbers = try await answer(request, session).mapValues { "\($0)" }
        }
    } catch let error as RLXError {
        (result.error, result.message) = ("\(error.code)", error.message)
    } catch {
        (result.error, result.message) = ("other", "\(error)")
    }
    print(String(decoding: try encoder.encode(result), as: UTF8.self))
    fflush(nil)
}
