// The update parameters of NeuralNetwork.proto, and Parameters.proto.

extension NetworkUpdates {
    init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: losses.append(try Loss(decoding: field.reader("LossLayer")))
            case 2: optimizer = try Optimizer(decoding: field.reader("Optimizer"))
            case 3: epochs = try IntegerParameter(decoding: field.reader("Int64Parameter"))
            case 10:
                shuffle = false
                var parameter = try field.reader("BoolParameter")
                while let value = try parameter.next(1) { shuffle = try value.bool() }
            case 20: seed = try IntegerParameter(decoding: field.reader("Int64Parameter"))
            default: break
            }
        }
    }
}

extension NetworkUpdates.Loss {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: name = try field.string()
            case 10, 11:
                kind = field.number == 10 ? .categoricalCrossEntropy : .meanSquaredError
                var parts = try field.reader("LossLayer")
                while let part = try parts.next() {
                    if part.number == 1 { input = try part.string() }
                    if part.number == 2 { target = try part.string() }
                }
            default: break
            }
        }
    }
}

extension NetworkUpdates.Optimizer {
    fileprivate init?(decoding reader: consuming WireReader) throws(FormatError) {
        var result: Self?
        while let field = try reader.next() {
            guard field.number == 10 || field.number == 11 else { continue }
            var reals: [Int: NetworkUpdates.RealParameter] = [:]
            var size: NetworkUpdates.IntegerParameter?
            var parts = try field.reader("Optimizer")
            while let part = try parts.next() {
                if part.number == 2 {
                    size = try .init(decoding: part.reader("Int64Parameter"))
                } else {
                    reals[part.number] = try .init(decoding: part.reader("DoubleParameter"))
                }
            }
            result =
                field.number == 10
                ? .sgd(learningRate: reals[1], miniBatchSize: size, momentum: reals[3])
                : .adam(learningRate: reals[1], miniBatchSize: size, beta1: reals[3], beta2: reals[4], eps: reals[5])
        }
        guard let result else { return nil }
        self = result
    }
}

extension NetworkUpdates.RealParameter {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: defaultValue = try field.double()
            case 10:
                (minimum, maximum) = (0, 0)
                var range = try field.reader("DoubleRange")
                while let bound = try range.next() {
                    if bound.number == 1 { minimum = try bound.double() }
                    if bound.number == 2 { maximum = try bound.double() }
                }
            default: break
            }
        }
    }
}

extension NetworkUpdates.IntegerParameter {
    fileprivate init(decoding reader: consuming WireReader) throws(FormatError) {
        self.init()
        while let field = try reader.next() {
            switch field.number {
            case 1: defaultValue = try field.int64()
            case 10:
                (minimum, maximum) = (0, 0)
                var range = try field.reader("Int64Range")
                while let bound = try range.next() {
                    if bound.number == 1 { minimum = try bound.int64() }
                    if bound.number == 2 { maximum = try bound.int64() }
                }
            case 11:
                var values: [Int64] = []
                var set = try field.reader("Int64Set")
                while let value = try set.next(1) { try value.append(to: &values) }
                allowed = values
            default: break
            }
        }
    }
}
