// The hash that a bundle names its files by; the system's where it has one.

import Foundation

#if canImport(CryptoKit)
import CryptoKit

func sha256Hex(_ data: Data) -> String { hex(SHA256.hash(data: data)) }
#else
func sha256Hex(_ data: Data) -> String {
    var hash = SHA256()
    data.withUnsafeBytes { hash.update($0) }
    return hex(hash.finish())
}

/// FIPS 180-4.
struct SHA256 {
    private var state: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    private var pending: [UInt8] = []
    private var length: UInt64 = 0
    private var words = [UInt32](repeating: 0, count: 64)

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        length &+= UInt64(bytes.count)
        var start = 0
        if !pending.isEmpty {
            start = min(64 - pending.count, bytes.count)
            pending.append(contentsOf: bytes[0..<start])
            guard pending.count == 64 else { return }
            let block = pending
            block.withUnsafeBytes { compress($0) }
            pending = []
        }
        while bytes.count - start >= 64 {
            compress(UnsafeRawBufferPointer(rebasing: bytes[start..<start + 64]))
            start += 64
        }
        pending.append(contentsOf: bytes[start...])
    }

    mutating func finish() -> [UInt8] {
        let bits = length &* 8
        var tail: [UInt8] = [0x80]
        while (pending.count + tail.count) % 64 != 56 { tail.append(0) }
        tail += (0..<8).reversed().map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
        tail.withUnsafeBytes { update($0) }
        return state.flatMap { word in (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
    }

    private mutating func compress(_ block: UnsafeRawBufferPointer) {
        for i in 0..<16 {
            words[i] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: i * 4, as: UInt32.self))
        }
        for i in 16..<64 {
            let (x, y) = (words[i - 15], words[i - 2])
            let s0 = x.rotated(7) ^ x.rotated(18) ^ (x >> 3)
            let s1 = y.rotated(17) ^ y.rotated(19) ^ (y >> 10)
            words[i] = words[i - 16] &+ s0 &+ words[i - 7] &+ s1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for i in 0..<64 {
            let s1 = e.rotated(6) ^ e.rotated(11) ^ e.rotated(25)
            let t1 = h &+ s1 &+ ((e & f) ^ (~e & g)) &+ Self.constants[i] &+ words[i]
            let s0 = a.rotated(2) ^ a.rotated(13) ^ a.rotated(22)
            let t2 = s0 &+ ((a & b) ^ (a & c) ^ (b & c))
            (h, g, f, e, d, c, b, a) = (g, f, e, d &+ t1, c, b, a, t1 &+ t2)
        }
        for (i, word) in [a, b, c, d, e, f, g, h].enumerated() { state[i] &+= word }
    }

    /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
    private static let constants: [UInt32] = {
        let primes = (2...311).filter { n in !(2..<n).contains { n % $0 == 0 } }
        return primes.map { prime in
            var (low, high): (UInt128, UInt128) = (0, 8 << 32)
            while high - low > 1 {
                let middle = (low + high) / 2
                if middle * middle * middle <= UInt128(prime) << 96 { low = middle } else { high = middle }
            }
            return UInt32(truncatingIfNeeded: low)
        }
    }()
}

extension UInt32 {
    fileprivate func rotated(_ count: UInt32) -> UInt32 { (self >> count) | (self << (32 - count)) }
}
#endif

private func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
}
