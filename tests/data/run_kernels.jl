# Runs KernelAbstractions kernels on CPU() for `kernels.py`, which writes the requests and reads the answers.
#
# A request is lines of fields with tabs between them, bytes as hexadecimal digits:
#   source <text>   name <kernel>   ndrange <n,n>   workgroup <n,n>
#   array <type> <n,n> <elements>   scalar <type> <bytes>   julia <expression>      (arguments, in order)
#   run
# and is answered by one line: "ok" with the elements of every array, or "error" with the exception's type and message.

using KernelAbstractions

const TYPES = Dict(
    "bool" => Bool, "float32" => Float32, "float64" => Float64, "complex64" => ComplexF32, "complex128" => ComplexF64,
    "int8" => Int8, "int16" => Int16, "int32" => Int32, "int64" => Int64,
    "uint8" => UInt8, "uint16" => UInt16, "uint32" => UInt32, "uint64" => UInt64,
)
const BACKEND = CPU()

sizes(text) = Tuple(parse(Int, part) for part in split(text, ',') if !isempty(part))

function elements(::Type{T}, dims, digits) where {T}
    made = Array{T}(undef, dims)
    isempty(made) || copyto!(reinterpret(UInt8, vec(made)), hex2bytes(digits))
    return made
end

digits_of(array) = isempty(array) ? "" : bytes2hex(collect(reinterpret(UInt8, vec(array))))

cause(e) = e isa LoadError ? cause(e.error) :
    e isa CompositeException ? cause(first(e.exceptions)) :
    e isa CapturedException ? cause(e.ex) :
    e isa TaskFailedException ? cause(e.task.exception) : e

# a module of its own for every source, as if it were a file
function loaded(text)
    home = Module(:Source)
    Core.eval(home, :(using KernelAbstractions))
    Core.eval(home, :(eval(x) = Core.eval($home, x)))
    Base.include_string(home, text, "source.jl")
    return home
end

function run_request(lines)
    text = name = ""
    ndrange = workgroup = nothing
    args = Any[]
    for (what, rest) in lines
        if what == "source"
            text = String(hex2bytes(rest[1]))
        elseif what == "name"
            name = Symbol(rest[1])
        elseif what == "ndrange"
            ndrange = sizes(rest[1])
        elseif what == "workgroup"
            workgroup = sizes(rest[1])
        else
            push!(args, (what, rest))
        end
    end
    home = loaded(text)
    values = Any[
        what == "array" ? elements(TYPES[rest[1]], sizes(rest[2]), rest[3]) :
        what == "scalar" ? elements(TYPES[rest[1]], (), rest[2])[] :
        Core.eval(home, Meta.parse(String(hex2bytes(rest[1])))) for (what, rest) in args
    ]
    Base.invokelatest() do
        launch = Core.eval(home, name)(BACKEND, workgroup)
        Base.invokelatest(() -> launch(values...; ndrange = ndrange))
        KernelAbstractions.synchronize(BACKEND)
    end
    return join((digits_of(v) for v in values if v isa Array), '\t')
end

function answer(lines)
    try
        return "ok\t" * redirect_stdout(() -> run_request(lines), stderr)
    catch e
        e = cause(e)
        return string("error\t", nameof(typeof(e)), '\t', bytes2hex(codeunits(first(sprint(showerror, e), 400))))
    end
end

function main(channel)
    lines = []
    for line in eachline(stdin)
        fields = String.(split(line, '\t'))
        if fields[1] == "run"
            println(channel, answer(lines))
            flush(channel)
            empty!(lines)
        else
            push!(lines, (fields[1], fields[2:end]))
        end
    end
end

println("ready")
flush(stdout)
main(stdout)
