// swift-tools-version: 6.3
// A package that depends on RLX by its path, as an app depends on it by its address.
import PackageDescription

var targets: [Target] = [
    .target(name: "DigitsKit", dependencies: [.product(name: "RLX", package: "rlx_swift")]),
    .executableTarget(name: "DigitsTrainer", dependencies: ["DigitsKit"]),
]

#if !os(Linux)
// Views alone: what they show and do is in DigitsKit.
targets.append(.executableTarget(name: "DigitsApp", dependencies: ["DigitsKit"]))
#endif

let package = Package(
    name: "DigitsTrainer",
    platforms: [.macOS(.v14), .iOS(.v17)],
    dependencies: [.package(name: "rlx_swift", path: "../..")],
    targets: targets
)
