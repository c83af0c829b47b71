// Trains a bundle on images of digits and prints how many of those it has not seen it takes for what they are.

import DigitsKit
import Foundation

guard CommandLine.arguments.count >= 3 else {
    print("usage: DigitsTrainer digits.rlxbundle digits.safetensors [EPOCHS [FOLDER]]")
    exit(2)
}
let (bundle, data) = (CommandLine.arguments[1], CommandLine.arguments[2])
let epochs = CommandLine.arguments.count > 3 ? Int(CommandLine.arguments[3]) ?? 10 : 10
let folder = CommandLine.arguments.count > 4 ? CommandLine.arguments[4] : "."

let training = DigitsTraining(
    bundle: URL(fileURLWithPath: bundle), data: URL(fileURLWithPath: data), folder: URL(fileURLWithPath: folder))
training.start(epochs: epochs)
await training.wait()
if let problem = training.problem {
    print("DigitsTrainer: error: \(problem)")
    exit(1)
}
if let accuracy = training.accuracy, let loss = training.losses.last {
    print("\(training.losses.count) updates, last loss \(loss)")
    print("test accuracy \((accuracy * 1000).rounded() / 10)%")
}
