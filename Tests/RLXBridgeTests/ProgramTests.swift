import CRLX
import Foundation
import Testing

extension BridgeTests {
    @Suite struct ProgramTests {
        @Test func features() throws {
            for program in [try Program("linreg"), try Program(memory: "linreg")] {
                let inputs = try program.features(RLX_FEATURE_KIND_INPUT)
                #expect(inputs == ["x 11 [8, 3]", "target 11 [8, 1]", "W 11 [3, 1]", "lr 11 [1]"])
                let outputs = try program.features(RLX_FEATURE_KIND_OUTPUT)
                #expect(outputs == ["loss 11 []", "prediction 11 [8, 1]", "W_next 11 [3, 1]"])
            }
            let program = try Program("linreg")
            var feature = rlx_feature()
            feature.size = MemoryLayout<rlx_feature>.size
            #expect(status { rlx_program_feature(program.handle, 0, 4, &feature, $0) } == RLX_STATUS_NOT_FOUND)
            #expect(status { rlx_program_feature(program.handle, 0, -1, &feature, $0) } == RLX_STATUS_NOT_FOUND)
            #expect(status { rlx_program_feature(program.handle, 2, 0, &feature, $0) } == RLX_STATUS_INVALID_ARGUMENT)
            #expect(rlx_program_feature_count(program.handle, 2) == 0)
        }

        @Test func functions() throws {
            var out: OpaquePointer?
            try call { rlx_program_load(Fixture.path("functions"), "first", &out, $0) }
            rlx_program_destroy(out)
            #expect {
                try call { rlx_program_load(Fixture.path("functions"), "third", &out, $0) }
            } throws: { error in
                error as? Failure
                    == Failure(
                        code: RLX_STATUS_NOT_FOUND,
                        message: "the model has no function 'third'; it has 'first', 'second'", subject: "third")
            }
        }

        @Test func failures() throws {
            func load(_ path: String) -> rlx_status {
                var out: OpaquePointer?
                defer { rlx_program_destroy(out) }
                return status { rlx_program_load(path, nil, &out, $0) }
            }
            #expect(load("/nowhere") == RLX_STATUS_IO)
            #expect(load(FileManager.default.temporaryDirectory.path) == RLX_STATUS_BAD_PACKAGE)
            #expect(load(#filePath) == RLX_STATUS_BAD_PACKAGE)
            #expect(load(Fixture.path("classifier")) == RLX_STATUS_UNSUPPORTED)
            #expect(load(Fixture.path("flexible")) == RLX_STATUS_UNSUPPORTED)
            let neural = Fixture.path("neural").replacingOccurrences(of: ".mlpackage", with: ".mlmodel")
            #expect(load(neural) == RLX_STATUS_UNSUPPORTED)
            let model = try Fixture.model("linreg")
            var out: OpaquePointer?
            for count in [0, 1, model.count / 2, model.count - 1] {
                let status = status { rlx_program_load_memory(model, count, nil, 0, nil, &out, $0) }
                #expect(status == RLX_STATUS_BAD_PACKAGE)
            }
            #expect(out == nil)
        }
    }
}
