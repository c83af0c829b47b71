// Operations whose work depends on values: done on numbers, so their operands must be known.
import RLXKernels

let dataDependentRules: [OperationRule] = [
    OperationRule("non_zero", ["x": .required]) { (call) throws(RuntimeError) in
        let x = try call.view("x")
        let numbers = try call.elements("x")
        let chosen = numbers.indices.filter { numbers[$0] != 0 }
        let storage = try Storage(type: .int32, shape: [chosen.count, x.rank])
        let strides = denseStrides(x.shape)
        storage.fill(
            chosen.flatMap { place in
                x.shape.indices.map { axis in Int32(truncatingIfNeeded: place / strides[axis] % x.shape[axis]) }
            })
        return call.graph.constant(storage)
    },
    OperationRule(
        "non_maximum_suppression",
        [
            "boxes": .required, "scores": .required, "iou_threshold": .required, "score_threshold": .absent,
            "max_boxes": .required, "per_class_suppression": false,
        ],
        lower: { (call) throws(RuntimeError) in
            let suppression = try Suppression(call)
            return try suppression.results(call)
        }),
]

/// Greedy suppression of boxes (x, y, width, height) about their centres.
private struct Suppression {
    /// From CoreML7 on boxes stand in the last dimension, nothing is dropped by score and no count is given.
    private let isTransposed: Bool
    private let boxes: [Double]
    private let scores: [Double]
    private let batch: Int
    private let count: Int
    private let classes: Int
    private let limit: Int
    private let overlap: Double
    private let lowest: Double
    private let isPerClass: Bool
    private let types: (boxes: ElementType, scores: ElementType)

    init(_ call: Call) throws(RuntimeError) {
        isTransposed = call.opset >= 7
        let boxes = try call.float(view: "boxes")
        let scores = try call.float(view: "scores")
        types = (boxes.type, scores.type)
        let axis = isTransposed ? 2 : 1
        guard boxes.rank == 3, scores.rank == 3, boxes.shape[3 - axis] == 4, boxes.shape[0] == scores.shape[0],
            boxes.shape[axis] == scores.shape[axis], scores.shape[3 - axis] >= 1
        else {
            throw call.failure(.shape(parameter: "scores", got: scores.shape, expected: "scores for \(boxes.shape)"))
        }
        batch = boxes.shape[0]
        count = boxes.shape[axis]
        classes = scores.shape[3 - axis]
        limit = try call.int("max_boxes")
        guard limit >= 0, limit < 1 << 24 else {
            throw call.failure(.value(parameter: "max_boxes", got: "\(limit)", expected: "a number of boxes"))
        }
        overlap = Double(try call.float("iou_threshold"))
        lowest = try call.has("score_threshold") ? Double(call.float("score_threshold")) : -.infinity
        isPerClass = try call.bool("per_class_suppression")
        self.boxes = try call.elements("boxes")
        self.scores = try call.elements("scores")
    }

    private func box(_ image: Int, _ index: Int) -> [Double] {
        (0..<4).map { boxes[isTransposed ? (image * 4 + $0) * count + index : (image * count + index) * 4 + $0] }
    }

    private func score(_ image: Int, _ index: Int, _ label: Int) -> Double {
        scores[isTransposed ? (image * classes + label) * count + index : (image * count + index) * classes + label]
    }

    /// The boxes of an image that stay, best first.
    private func kept(_ image: Int) -> [Int] {
        let best = (0..<count).map { index in
            (0..<classes).max { score(image, index, $0) < score(image, index, $1) } ?? 0
        }
        let order = (0..<count).filter { score(image, $0, best[$0]) >= lowest }
            .sorted { a, b in
                let (x, y) = (score(image, a, best[a]), score(image, b, best[b]))
                return x != y ? x > y : a < b
            }
        let corners = (0..<count).map { Rectangle(box(image, $0)) }
        var kept: [Int] = []
        for index in order where kept.count < limit {
            let isSuppressed = kept.contains { other in
                (!isPerClass || best[other] == best[index]) && corners[other].overlap(corners[index]) > overlap
            }
            if !isSuppressed { kept.append(index) }
        }
        return kept
    }

    /// Boxes, scores, indices and, before CoreML7, how many there are; padded with zeros and -1.
    func results(_ call: Call) throws(RuntimeError) -> [View] {
        let keptBoxes = try Storage(
            type: .float32, shape: isTransposed ? [batch, 4, limit] : [batch, limit, 4])
        let keptScores = try Storage(
            type: .float32, shape: isTransposed ? [batch, classes, limit] : [batch, limit, classes])
        let indices = try Storage(type: .int32, shape: [batch, limit])
        let counts = try Storage(type: .int32, shape: [batch])
        let boxFloats = keptBoxes.bytes.assumingMemoryBound(to: Float.self)
        let scoreFloats = keptScores.bytes.assumingMemoryBound(to: Float.self)
        let places = indices.bytes.assumingMemoryBound(to: Int32.self)
        for index in places.indices { places[index] = -1 }
        for image in 0..<batch {
            let kept = kept(image)
            counts.bytes.assumingMemoryBound(to: Int32.self)[image] = Int32(kept.count)
            for (rank, index) in kept.enumerated() {
                places[image * limit + rank] = Int32(index)
                for (part, value) in box(image, index).enumerated() {
                    boxFloats[place(image, rank, part, of: 4)] = Float(value)
                }
                for label in 0..<classes {
                    scoreFloats[place(image, rank, label, of: classes)] = Float(score(image, index, label))
                }
            }
        }
        let graph = call.graph
        let results = [
            try graph.cast(graph.constant(keptBoxes), to: types.boxes),
            try graph.cast(graph.constant(keptScores), to: types.scores), graph.constant(indices),
        ]
        return isTransposed ? results : results + [graph.constant(counts)]
    }

    private func place(_ image: Int, _ rank: Int, _ part: Int, of parts: Int) -> Int {
        isTransposed ? (image * parts + part) * limit + rank : (image * limit + rank) * parts + part
    }
}

private struct Rectangle {
    let left, top, right, bottom: Double

    init(_ box: [Double]) {
        (left, right) = (box[0] - box[2] / 2, box[0] + box[2] / 2)
        (top, bottom) = (box[1] - box[3] / 2, box[1] + box[3] / 2)
    }

    private var area: Double { max(right - left, 0) * max(bottom - top, 0) }

    /// Intersection over union.
    func overlap(_ other: Rectangle) -> Double {
        let width = min(right, other.right) - max(left, other.left)
        let height = min(bottom, other.bottom) - max(top, other.top)
        let shared = max(width, 0) * max(height, 0)
        let union = area + other.area - shared
        return union > 0 ? shared / union : 0
    }
}
