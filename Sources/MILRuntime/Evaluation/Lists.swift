// Lists of tensors: made, written, read.
import MILFormat

/// A value: writing makes another list.
struct TensorList {
    var elements: [Storage?]
    var type: ElementType
    /// Of each element; nil where it is known only from elements that were written.
    var elementShape: [Int]?

    static let largestCount = 1 << 24

    /// Elements that were never written are zeros.
    func element(_ index: Int, _ place: RuntimeError.Place) throws(RuntimeError) -> Storage {
        guard elements.indices.contains(index) else {
            throw .invalid(
                .value(parameter: "index", got: "\(index)", expected: "an element of \(elements.count)"), place)
        }
        if let element = elements[index] { return element }
        guard let shape = elementShape ?? elements.lazy.compactMap(\.self).first?.shape else {
            throw .invalid(.value(parameter: "index", got: "\(index)", expected: "an element that was written"), place)
        }
        return try Storage(type: type, shape: shape)
    }

    /// Grows where `index` lies past the end.
    mutating func set(_ index: Int, _ value: Storage, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard index >= 0, index < Self.largestCount else {
            throw .invalid(.value(parameter: "index", got: "\(index)", expected: "an index from 0 on"), place)
        }
        guard value.type == type, elementShape == nil || elementShape == value.shape else {
            throw .invalid(
                .shape(parameter: "value", got: value.shape, expected: "\(type) \(elementShape ?? [])"), place)
        }
        while elements.count <= index { elements.append(nil) }
        elements[index] = value
    }
}

extension ValueOperations {
    static let listOperations: [String: Perform] = [
        "make_list": { (call) throws(RuntimeError) in try call.define([.list(call.makeList())]) },
        "list_length": { (call) throws(RuntimeError) in
            let length = try Storage(type: .int32, shape: call.lengthShape)
            length.fill([Int32(clamping: try call.list().elements.count)])
            try call.define([.tensor(length)])
        },
        "list_read": { (call) throws(RuntimeError) in
            let list = try call.list()
            try call.define([.tensor(list.element(call.index("index", list), call.place))])
        },
        "list_write": { (call) throws(RuntimeError) in
            var list = try call.list()
            try list.set(call.index("index", list), call.tensor("value").copy(), call.place)
            try call.define([.list(list)])
        },
        "list_gather": { (call) throws(RuntimeError) in
            let list = try call.list()
            var elements: [Storage] = []
            for index in try call.indices("indices", list) { elements.append(try list.element(index, call.place)) }
            try call.define([.tensor(call.stack(elements, list))])
        },
        "list_scatter": { (call) throws(RuntimeError) in
            var list = try call.list()
            let indices = try call.indices("indices", list)
            let value = try call.tensor("value")
            guard value.shape.first == indices.count else {
                throw call.failure(.shape(parameter: "value", got: value.shape, expected: "\(indices.count) elements"))
            }
            let size = value.bytes.count / max(indices.count, 1)
            for (position, index) in indices.enumerated() {
                let element = try Storage(type: value.type, shape: Array(value.shape.dropFirst()))
                element.bytes.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: value.bytes[position * size..<(position + 1) * size]))
                try list.set(index, element, call.place)
            }
            try call.define([.list(list)])
        },
    ]
}

extension ValueCall {
    fileprivate func list() throws(RuntimeError) -> TensorList {
        guard case .list(let list) = try value("ls") else { throw failure(.notAList) }
        return list
    }

    fileprivate func makeList() throws(RuntimeError) -> TensorList {
        var type = ElementType.float32
        if operation.inputs["dtype"] != nil {
            guard case .constant(.strings(let words, _)) = try value("dtype"), words.count == 1 else {
                throw failure(.value(parameter: "dtype", got: "no string", expected: "the name of a type"))
            }
            guard let named = ElementType(name: words[0]) else { throw .unsupported(.type(words[0]), place) }
            type = named
        }
        let length = operation.inputs["init_length"] == nil ? 1 : try integers("init_length").first ?? 1
        guard length >= 0, length <= TensorList.largestCount else {
            throw failure(.value(parameter: "init_length", got: "\(length)", expected: "a number of elements"))
        }
        return TensorList(
            elements: Array(repeating: nil, count: length), type: type, elementShape: try elementShape())
    }

    /// Sizes are numbers, or strings where they are known at run time only.
    private func elementShape() throws(RuntimeError) -> [Int]? {
        guard operation.inputs["elem_shape"] != nil else { return nil }
        var shape: [Int] = []
        for value in try values("elem_shape") {
            guard let storage = value.storage else { return nil }
            for number in storage.numbers {
                guard let size = Int(exactly: number), size >= 0 else { return nil }
                shape.append(size)
            }
        }
        return shape
    }

    private func integers(_ parameter: String) throws(RuntimeError) -> [Int] {
        let storage = try tensor(parameter)
        guard !storage.type.isFloat, storage.type != .bool else {
            throw failure(
                .elementType(parameter: parameter, got: storage.type.description, expected: "an integer type"))
        }
        return storage.numbers.map { Int($0) }
    }

    /// Negative ones count from the end.
    fileprivate func indices(_ parameter: String, _ list: TensorList) throws(RuntimeError) -> [Int] {
        try integers(parameter).map { $0 < 0 ? $0 + list.elements.count : $0 }
    }

    fileprivate func index(_ parameter: String, _ list: TensorList) throws(RuntimeError) -> Int {
        let all = try indices(parameter, list)
        guard all.count == 1 else {
            throw failure(.value(parameter: parameter, got: "\(all)", expected: "one index"))
        }
        return all[0]
    }

    /// Rank 0 or one element, as the file declares it.
    fileprivate var lengthShape: [Int] {
        if case .tensor(let tensor)? = operation.outputs.first?.type, tensor.dimensions.isEmpty { return [] }
        return [1]
    }

    fileprivate func stack(_ elements: [Storage], _ list: TensorList) throws(RuntimeError) -> Storage {
        let shape = elements.first?.shape ?? list.elementShape ?? []
        for element in elements where element.shape != shape {
            throw failure(.shape(parameter: "ls", got: element.shape, expected: "\(shape), as the others"))
        }
        let result = try Storage(type: list.type, shape: [elements.count] + shape)
        var offset = 0
        for element in elements {
            UnsafeMutableRawBufferPointer(rebasing: result.bytes[offset...]).copyMemory(
                from: UnsafeRawBufferPointer(element.bytes))
            offset += element.bytes.count
        }
        return result
    }
}
