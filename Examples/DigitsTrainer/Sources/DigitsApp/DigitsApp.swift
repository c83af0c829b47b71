// The views of a small app: a curve, two buttons, and training that goes on in the background.

import Charts
import DigitsKit
import Foundation
import SwiftUI

@main
struct DigitsApp: App {
    @State private var training = DigitsTraining(
        bundle: Bundle.main.bundleURL.appendingPathComponent("digits.rlxbundle"),
        data: Bundle.main.bundleURL.appendingPathComponent("digits.safetensors"),
        folder: URL.documentsDirectory)

    init() {
        #if os(iOS)
        BackgroundTraining.register(training)
        #endif
    }

    var body: some Scene {
        WindowGroup { TrainingView(training: training) }
    }
}

struct TrainingView: View {
    let training: DigitsTraining

    var body: some View {
        VStack(spacing: 16) {
            Chart(Array(training.losses.enumerated()), id: \.offset) { index, loss in
                LineMark(x: .value("Update", index), y: .value("Loss", loss))
            }
            if let accuracy = training.accuracy { Text("Accuracy \(accuracy, format: .percent)") }
            if let problem = training.problem { Text(problem).foregroundStyle(.red) }
            if training.isRunning {
                Button("Stop") { training.stop() }
            } else {
                Button("Train") { training.start(epochs: 5) }
            }
        }
        .padding()
    }
}
