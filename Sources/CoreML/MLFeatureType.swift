// Kinds of feature values.

public enum MLFeatureType: Int, Sendable {
    case invalid = 0, int64, double, string, image, multiArray, dictionary, sequence
    @available(macOS 15, iOS 18, *)
    case state
}
