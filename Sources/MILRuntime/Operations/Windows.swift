// Where sliding windows lie: strides, dilations and the kinds of padding that convolutions and pools share.
import RLXKernels

enum PadType: String, CaseIterable {
    case valid, custom, same
    case sameLower = "same_lower"
}

/// Windows over 1 to 3 spatial dimensions.
struct Windows {
    var image: [Int]
    var kernel: [Int]
    var stride: [Int]
    var dilation: [Int]
    var before: [Int]
    var after: [Int]
    /// How many there are in each dimension.
    var count: [Int]

    /// Of a dimension; products of a few such numbers and steps do not overflow.
    static let largestSize = 1 << 24

    /// As the kernel wants it: three dimensions, missing ones in front.
    var kernelWindow: rlxk_window {
        var window = rlxk_window()
        func padded(_ values: [Int], _ value: Int) -> [Int] {
            Array(repeating: value, count: 3 - values.count) + values
        }
        fill(&window.image, padded(image, 1))
        fill(&window.windows, padded(count, 1))
        fill(&window.kernel, padded(kernel, 1))
        fill(&window.stride, padded(stride, 1))
        fill(&window.dilation, padded(dilation, 1))
        fill(&window.before, padded(before, 0))
        return window
    }
}

extension Call {
    /// One positive number for each of `count` dimensions; ones when the parameter is left out.
    func steps(_ name: String, _ count: Int) throws(RuntimeError) -> [Int] {
        guard let steps = try optionalInts(name) else { return Array(repeating: 1, count: count) }
        guard steps.count == count, steps.allSatisfy({ $0 >= 1 && $0 < 1 << 31 }) else {
            throw failure(.value(parameter: name, got: "\(steps)", expected: "\(count) numbers from 1 on"))
        }
        return steps
    }

    /// The `pad` parameter: before and after of each dimension; zeros when it is left out.
    func borders(_ count: Int) throws(RuntimeError) -> (before: [Int], after: [Int]) {
        let pad = try optionalInts("pad") ?? Array(repeating: 0, count: 2 * count)
        guard pad.count == 2 * count, pad.allSatisfy({ $0 >= 0 && $0 <= Windows.largestSize }) else {
            throw failure(.value(parameter: "pad", got: "\(pad)", expected: "\(2 * count) numbers from 0 on"))
        }
        return ((0..<count).map { pad[2 * $0] }, (0..<count).map { pad[2 * $0 + 1] })
    }

    /// The windows of a convolution or a pool over `image`.
    func windows(image: [Int], kernel: [Int], ceil: Bool = false) throws(RuntimeError) -> Windows {
        let dims = image.count
        let stride = try steps("strides", dims)
        let dilation = try parameters["dilations"] == nil ? Array(repeating: 1, count: dims) : steps("dilations", dims)
        let type = try choice("pad_type", PadType.self)
        var windows = Windows(
            image: image, kernel: kernel, stride: stride, dilation: dilation,
            before: Array(repeating: 0, count: dims), after: Array(repeating: 0, count: dims), count: [])
        if type == .custom { (windows.before, windows.after) = try borders(dims) }
        for axis in 0..<dims {
            guard image[axis] <= Windows.largestSize, kernel[axis] <= Windows.largestSize else {
                throw failure(.tooLarge(image + kernel))
            }
            let reach = (kernel[axis] - 1) * dilation[axis] + 1
            if type == .same || type == .sameLower {
                let count = (image[axis] + stride[axis] - 1) / stride[axis]
                let total = max(0, (count - 1) * stride[axis] + reach - image[axis])
                windows.before[axis] = type == .same ? total / 2 : total - total / 2
                windows.after[axis] = total - windows.before[axis]
                windows.count.append(count)
                continue
            }
            let pads = windows.before[axis] + windows.after[axis]
            let room = image[axis] + pads - reach
            guard room >= 0 else {
                throw failure(
                    .shape(parameter: "x", got: image, expected: "room for windows of \(kernel), dilated \(dilation)"))
            }
            var count = (ceil ? room + stride[axis] - 1 : room) / stride[axis] + 1
            if ceil, pads > 0, (count - 1) * stride[axis] >= image[axis] + windows.before[axis] { count -= 1 }
            windows.count.append(count)
        }
        return windows
    }
}
