// Apple's Core ML API for Linux, running on our own runtime: what `import CoreML` brings along.
@_exported import Dispatch
@_exported import Foundation
