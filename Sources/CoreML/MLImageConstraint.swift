// What images a feature takes. There are no image values on Linux: descriptions can be read, images not given.
import Foundation
import MILFormat

/// Four-character codes, as Apple's headers declare them.
public typealias OSType = UInt32

open class MLImageConstraint: NSObject {
    public let pixelsHigh: Int
    public let pixelsWide: Int
    public let pixelFormatType: OSType
    public let sizeConstraint: MLImageSizeConstraint

    init(_ feature: ImageFeature) {
        pixelsHigh = feature.height
        pixelsWide = feature.width
        pixelFormatType = feature.colorSpace.pixelFormat
        sizeConstraint = MLImageSizeConstraint(pixelsWide: feature.width, pixelsHigh: feature.height)
    }
}

extension ImageFeature.ColorSpace {
    /// The codes of CVPixelBuffer.h: BGRA, L008, L00h.
    fileprivate var pixelFormat: OSType {
        switch self {
        case .unspecified, .rgb, .bgr: 0x4247_5241
        case .grayscale: 0x4C30_3038
        case .grayscaleFloat16: 0x4C30_3068
        }
    }
}

public enum MLImageSizeConstraintType: Int, Sendable {
    case unspecified = 0
    case enumerated = 2, range
}

open class MLImageSizeConstraint: NSObject {
    public let type = MLImageSizeConstraintType.unspecified
    public let pixelsWideRange: NSRange
    public let pixelsHighRange: NSRange
    public let enumeratedImageSizes: [MLImageSize] = []

    init(pixelsWide: Int, pixelsHigh: Int) {
        pixelsWideRange = NSRange(location: pixelsWide, length: 1)
        pixelsHighRange = NSRange(location: pixelsHigh, length: 1)
    }
}

/// Only enumerated sizes have it, and those are not read.
open class MLImageSize: NSObject {
    public let pixelsWide: Int
    public let pixelsHigh: Int

    init(pixelsWide: Int, pixelsHigh: Int) {
        self.pixelsWide = pixelsWide
        self.pixelsHigh = pixelsHigh
    }
}
