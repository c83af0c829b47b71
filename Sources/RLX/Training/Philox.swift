// Random numbers that depend on their address alone: seed, micro-batch and site. The same as the Python side draws.

/// Philox4x32-10 (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3).
enum Philox {
    /// Ten rounds.
    static func block(_ counter: SIMD4<UInt32>, key: SIMD2<UInt32>) -> SIMD4<UInt32> {
        var (c, k) = (counter, key)
        for _ in 0..<10 {
            let p0 = UInt64(c.x) * 0xD251_1F53
            let p1 = UInt64(c.z) * 0xCD9E_8D57
            c = SIMD4(
                UInt32(truncatingIfNeeded: p1 >> 32) ^ c.y ^ k.x, UInt32(truncatingIfNeeded: p1),
                UInt32(truncatingIfNeeded: p0 >> 32) ^ c.w ^ k.y, UInt32(truncatingIfNeeded: p0))
            k &+= SIMD2(0x9E37_79B9, 0xBB67_AE85)
        }
        return c
    }

    /// Where numbers are drawn: `number` counts micro-batches.
    struct Address {
        let seed: Int
        let number: Int
        let site: String
    }

    /// In (0, 1): odd multiples of 2^-24, so that neither end is hit.
    static func uniform(_ address: Address, count: Int) -> [Float] {
        words(address, count: count) { Float($0 >> 9) * 0x1p-23 + 0x1p-24 }
    }

    /// Each 1 or -1.
    static func signs(_ address: Address, count: Int) -> [Float] {
        words(address, count: count) { 1 - 2 * Float($0 >> 31) }
    }

    private static func words(_ address: Address, count: Int, _ number: (UInt32) -> Float) -> [Float] {
        let key = halves(address.seed)
        let micro = halves(address.number)
        let site = crc32(address.site.utf8)
        return [Float](unsafeUninitializedCapacity: count) { buffer, filled in
            for start in stride(from: 0, to: count, by: 4) {
                let index = UInt32(truncatingIfNeeded: start / 4)
                let block = block(SIMD4(index, site, micro.x, micro.y), key: key)
                for lane in 0..<min(4, count - start) { buffer[start + lane] = number(block[lane]) }
            }
            filled = count
        }
    }

    private static func halves(_ value: Int) -> SIMD2<UInt32> {
        SIMD2(UInt32(truncatingIfNeeded: value), UInt32(truncatingIfNeeded: value >> 32))
    }

    /// That of zlib.
    static func crc32(_ bytes: some Sequence<UInt8>) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = (crc >> 1) ^ (crc & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
        return ~crc
    }
}
