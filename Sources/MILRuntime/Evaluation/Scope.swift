// The values that names have while a function runs.

/// What a name stands for.
enum Datum {
    /// Dense; never written once it is here.
    case tensor(Storage)
    case constant(Constant)
    case list(TensorList)
    /// Written by `write_state`.
    case state(Storage)
    case label(Int)
    case probabilities(Storage)
}

/// The names of one run of a block; it sees those of the blocks around it.
final class Scope {
    private var values: [String: Datum] = [:]
    private let parent: Scope?

    init(parent: Scope?) { self.parent = parent }

    func find(_ name: String) -> Datum? {
        var scope: Scope? = self
        while let current = scope {
            if let value = current.values[name] { return value }
            scope = current.parent
        }
        return nil
    }

    func value(_ name: String, _ place: RuntimeError.Place) throws(RuntimeError) -> Datum {
        guard let value = find(name) else { throw .invalid(.undefinedName(name), place) }
        return value
    }

    func define(_ name: String, _ value: Datum, _ place: RuntimeError.Place) throws(RuntimeError) {
        guard values.updateValue(value, forKey: name) == nil else { throw .invalid(.redefinedName(name), place) }
    }

    /// Lets go of values that nothing reads any more.
    func forget(_ names: [String]) {
        for name in names { values[name] = nil }
    }
}
