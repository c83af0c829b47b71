// What training finds wrong, in words.

extension RLXError {
    static func badManifest(_ place: String, _ problem: String) -> RLXError {
        RLXError(.badPackage, "manifest.json, \(place): \(problem)", subject: place)
    }

    static func badCheckpoint(_ subject: String, _ problem: String) -> RLXError {
        RLXError(.badPackage, "checkpoint '\(subject)': \(problem)", subject: subject)
    }

    /// What a JSON decoder threw, with the place.
    static func undecodable(_ file: String, _ error: any Error) -> RLXError {
        guard let error = error as? DecodingError else {
            return RLXError(.badPackage, "\(file): it is no JSON", subject: file, detail: "\(error)")
        }
        let (context, problem): (DecodingError.Context, String) =
            switch error {
            case .keyNotFound(let key, let context): (context, "'\(key.stringValue)' is missing")
            case .valueNotFound(_, let context), .typeMismatch(_, let context), .dataCorrupted(let context):
                (context, context.debugDescription)
            @unknown default: (.init(codingPath: [], debugDescription: ""), "\(error)")
            }
        let place = context.codingPath.prefix(12).map { $0.intValue.map(String.init) ?? $0.stringValue }
        let path = ([file] + place).joined(separator: ".")
        return RLXError(.badPackage, "\(path): \(problem)", subject: path, detail: "\(error)")
    }

    static func badRate(_ rate: Double, update: Int) -> RLXError {
        RLXError(
            .invalidArgument,
            "the learning rate for update \(update) is \(rate); it must be a finite number of at least 0",
            subject: "learning rate")
    }

    static func badSchedule(_ problem: String) -> RLXError {
        RLXError(.invalidArgument, "the schedule's \(problem)", subject: "schedule")
    }

    static func badWeight(_ weight: Double) -> RLXError {
        RLXError(
            .invalidArgument, "the weight of a micro-batch is \(weight); it must be a finite number above 0",
            subject: "weight")
    }

    static func pending(_ call: String, count: Int) -> RLXError {
        RLXError(
            .invalidArgument,
            "\(call): \(count) accumulated micro-batches are pending; "
                + "call stepAccumulated() or discardAccumulated() first", subject: call)
    }

    static func noSuchValue(_ name: String, _ kind: String, among names: some Collection<String>) -> RLXError {
        let known = names.sorted().map { "'\($0)'" }.joined(separator: ", ")
        return RLXError(.notFound, "there is no \(kind) '\(name)'; there are \(known)", subject: name)
    }

    /// `sizes` are the shapes that the bundle has for the input.
    static func noSuchSize(_ name: String, _ shape: [Int], among sizes: [[Int]]) -> RLXError {
        let known = sizes.map(\.text).joined(separator: ", ")
        return RLXError(
            .badShape, "'\(name)' has shape \(shape.text); the bundle was exported for \(known)", subject: name)
    }

    static func sizesDisagree(_ batch: [String: Tensor]) -> RLXError {
        let shapes = batch.sorted { $0.key < $1.key }.map { "'\($0.key)' \($0.value.shape.text)" }
        return RLXError(
            .badShape, "the bundle was not exported for this choice of sizes: \(shapes.joined(separator: ", "))",
            subject: "batch")
    }

    static func noAverages() -> RLXError {
        RLXError(.notFound, "the run keeps no averages; export it from a config with `ema`", subject: "ema")
    }

    static func noBatches(epoch: Int) -> RLXError {
        RLXError(
            .invalidArgument,
            "fit: there was no batch in epoch \(epoch)"
                + (epoch > 1 ? "; give a sequence that can be iterated more than once" : ""), subject: "fit")
    }

    static func notFinite(skips: Int) -> RLXError {
        let what = skips > 0 ? "\(skips) updates in a row had gradients" : "three updates in a row had losses"
        return RLXError(
            .invalidArgument, "fit: \(what) that were not finite; lower the learning rate or clip the gradients",
            subject: "fit")
    }
}
