import RLX
import Testing

@Suite struct ModelTests {
    @Test func predictions() throws {
        let model = try Model(contentsOf: Fixture.url("linear32"), configuration: .init(device: .cpu))
        #expect(model.inputs == [Feature(name: "x", dtype: .float32, shape: [2, 4])])
        let x = try Tensor([0, 1, 0, 0, 0, 0, 1, 0] as [Float], shape: [2, 4])
        let y = try model.predict(["x": x])["y"]
        #expect(y?.shape == [2, 6])
        #expect(try y?.scalars(as: Float.self) == (6..<18).map { (Float($0) - 7.5) / 4 + 0.5 })
    }

    @Test func mistakes() throws {
        let model = try Model(contentsOf: Fixture.url("linear32"), configuration: .init(device: .cpu))
        func code(_ values: [String: Tensor]) -> RLXError.Code? {
            do throws(RLXError) {
                _ = try model.predict(values)
                return nil
            } catch {
                return error.code
            }
        }
        let good = try Tensor([Float](repeating: 0, count: 8), shape: [2, 4])
        #expect(code([:]) == .notFound)
        #expect(code(["x": good, "z": good]) == .notFound)
        #expect(code(["x": try Tensor([Float](repeating: 0, count: 8), shape: [4, 2])]) == .badShape)
        #expect(code(["x": try Tensor([Int32](repeating: 0, count: 8), shape: [2, 4])]) == .badDType)
        #expect(code(["x": good]) == nil)
    }

    @Test func packagesThatAreNone() {
        let error = #expect(throws: RLXError.self) { try Model(contentsOf: Fixture.url("nothing")) }
        #expect(error?.code == .io)
    }
}
