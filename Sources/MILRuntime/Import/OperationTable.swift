// The operations that the runtime has, by name. Each family's file adds its own; this one only collects them.

enum OperationTable {
    static let rules: [String: OperationRule] = {
        let families = [
            elementwiseRules, activationRules, comparisonRules, linearAlgebraRules, reductionRules, layoutRules,
            slicingRules, indexingRules, sortingRules, normalizationRules, convolutionRules, poolingRules,
            resizingRules, contractionRules, rearrangementRules, compressionRules, dataDependentRules, randomRules,
            recurrentRules, samplingRules,
        ]
        return Dictionary(uniqueKeysWithValues: families.joined().map { ($0.name, $0) })
    }()
}
