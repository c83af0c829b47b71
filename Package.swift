// swift-tools-version: 6.3
// The only place that names targets, platforms and Swift versions.
import PackageDescription

var targets: [Target] = [
    // MARK: C
    .target(name: "CRLX"),
    .target(
        name: "RLXKernels",
        linkerSettings: [
            .linkedFramework("Accelerate", .when(platforms: [.macOS, .iOS])),
            .linkedLibrary("m", .when(platforms: [.linux])),
        ]),

    .target(name: "MappedFile"),

    // MARK: Swift
    .target(name: "MILFormat", dependencies: ["MappedFile"]),
    .target(name: "MILRuntime", dependencies: ["MILFormat", "RLXKernels"]),
    .target(
        name: "RLX", dependencies: ["MILRuntime", "MILFormat"], resources: [.copy("PrivacyInfo.xcprivacy")]),
    .target(name: "RLXBridge", dependencies: ["RLX", "MILRuntime", "CRLX"]),

    // MARK: Tests
    .testTarget(name: "RLXKernelsTests", dependencies: ["RLXKernels"]),
    .testTarget(name: "MILFormatTests", dependencies: ["MILFormat"], resources: [.copy("Fixtures")]),
    .testTarget(
        name: "MILRuntimeTests", dependencies: ["MILRuntime", "RLXKernels"], resources: [.copy("Cases")]),
    .executableTarget(name: "BundleDriver", dependencies: ["RLX"], path: "Tests/BundleDriver"),
    .testTarget(name: "RLXTests", dependencies: ["RLX"], exclude: ["Bundles"]),
    .testTarget(name: "RLXBridgeTests", dependencies: ["RLXBridge", "CRLX"]),
]

var products: [Product] = [
    .library(name: "RLX", targets: ["RLX"]),
    .library(name: "RLXBridge", type: .dynamic, targets: ["RLXBridge"]),
]

#if os(Linux)
// Apple's Core ML API on our own runtime, so that the code that ships on Apple systems runs here too.
products.append(.library(name: "CoreML", targets: ["CoreML"]))
targets.append(.target(name: "CoreML", dependencies: ["MILRuntime", "MILFormat", "RLXKernels"]))
targets.append(.testTarget(name: "CoreMLTests", dependencies: ["CoreML"], exclude: ["Apple", "Networks"]))
for target in targets where ["RLX", "RLXTests"].contains(target.name) { target.dependencies.append("CoreML") }
#else
// Objective-C, which only Apple's compilers build.
targets.append(.target(name: "RLXExceptions", linkerSettings: [.linkedFramework("Foundation")]))
for target in targets where target.name == "RLX" { target.dependencies.append("RLXExceptions") }
#endif

let package = Package(
    name: "rlx_swift",
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: products,
    targets: targets
)
