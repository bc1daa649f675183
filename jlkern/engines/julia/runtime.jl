# The Julia side of the julia engine: loads sources, prepares launches, reads Python's arguments, runs and times kernels.
#
# Python calls the functions at the end of this file by their C addresses; no Julia value ever goes to Python, and
# nothing here needs PythonCall. What is prepared stands in a table and is named by its place. Written for Julia 1.10
# and newer; it also runs on 1.5.

module JlkernRuntime

using KernelAbstractions

const KA = KernelAbstractions
const Object = Ptr{Cvoid}

# --- arrays of NumPy's memory, column-major ones apart ----------------------------------------------------------------

"""
Memory with a stride per dimension, in bytes. `U` is the dimension along which the elements lie side by side, 0 where
none is known to: with it the compiler sees unit strides.

No `DenseArray`: Julia hands those to BLAS, which takes an array of several dimensions for one stretch of memory.
"""
struct Strided{T,N,U} <: AbstractArray{T,N}
    start::Ptr{T}
    size::NTuple{N,Int}
    strides::NTuple{N,Int}
end

@inline place(a::Strided{T,N,U}, I::NTuple{N,Int}) where {T,N,U} =
    Ptr{T}(a.start + offset(Val(U), Val(1), sizeof(T), a.strides, I))

@inline offset(unit, dim, width, ::Tuple{}, ::Tuple{}) = 0
@inline function offset(::Val{U}, ::Val{D}, width, strides::Tuple{Int,Vararg{Int}}, I::Tuple{Int,Vararg{Int}}) where {U,D}
    step = U == D ? width : strides[1]
    return (I[1] - 1) * step + offset(Val(U), Val(D + 1), width, Base.tail(strides), Base.tail(I))
end

Base.size(a::Strided) = a.size
Base.IndexStyle(::Type{<:Strided}) = IndexCartesian()
Base.strides(a::Strided{T}) where {T} = map(step -> div(step, sizeof(T)), a.strides)
Base.elsize(::Type{<:Strided{T}}) where {T} = sizeof(T)
Base.unsafe_convert(::Type{Ptr{T}}, a::Strided{T}) where {T} = a.start

@inline function Base.getindex(a::Strided{T,N}, I::Vararg{Int,N}) where {T,N}
    @boundscheck checkbounds(a, I...)
    return unsafe_load(place(a, I))
end

@inline function Base.setindex!(a::Strided{T,N}, value, I::Vararg{Int,N}) where {T,N}
    @boundscheck checkbounds(a, I...)
    unsafe_store!(place(a, I), convert(T, value)::T)
    return a
end

# what Atomix asks for
@inline Base.pointer(a::Strided{T,N}, i::Integer) where {T,N} = place(a, Tuple(@inbounds CartesianIndices(a.size)[i]))

"What `@Const` makes of a `Strided`: it cannot be written."
struct Constant{T,N,A<:Strided{T,N}} <: AbstractArray{T,N}
    array::A
end

Base.size(a::Constant) = size(a.array)
Base.IndexStyle(::Type{<:Constant}) = IndexCartesian()
Base.@propagate_inbounds Base.getindex(a::Constant{T,N}, I::Vararg{Int,N}) where {T,N} = a.array[I...]
Base.setindex!(a::Constant{T,N}, value, I::Vararg{Int,N}) where {T,N} = error("a `@Const` array is written")

KA.Adapt.adapt_storage(::KA.ConstAdaptor, a::Strided) = Constant(a)

# --- what an argument is ----------------------------------------------------------------------------------------------
#
# A spec reads one argument, either from a Python object (`fits` first, then `value`) or from a row of words that Python
# has written (`take`): an array is its address, sizes and byte strides; a number is its bytes in two words.

# NumPy's and Python's objects; `probe` in bridge.py checks these places against what Python says.
const TYPE = 8
const DATA, NDIM, SHAPE, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64
const NUMBER = 16
const ITEMS = 24
const CONTIGUOUS = (C = Cint(1), F = Cint(2))
const ALIGNED, WRITEABLE = Cint(0x100), Cint(0x400)

@inline at(::Type{T}, object::Object, place) where {T} = unsafe_load(Ptr{T}(object + place))

abstract type Spec end

"An array: `L` is its layout, :F, :C or :S; `W` says that the kernel may write it."
struct ArraySpec{T,N,L,W} <: Spec
    descr::Object
end

"A number; `class` is the NumPy scalar's type."
struct ScalarSpec{T} <: Spec
    class::Object
end

struct TupleSpec{S<:Tuple} <: Spec
    items::S
end

"What is the same in every call: a type, a function, a `Val`."
struct Fixed{V} <: Spec
    value::V
end

unit(N, L) = L === :C ? N : L === :F ? 1 : 0

@inline made(::ArraySpec{T,N,:F}, start, size, strides) where {T,N} = unsafe_wrap(Array, Ptr{T}(start), size)
@inline made(::ArraySpec{T,N,L}, start, size, strides) where {T,N,L} =
    Strided{T,N,unit(N, L)}(Ptr{T}(start), size, strides)

@inline function fits(s::ArraySpec{T,N,L,W}, o::Object) where {T,N,L,W}
    at(Object, o, TYPE) == NDARRAY[] || return false
    flags = at(Cint, o, FLAGS)
    wanted = ALIGNED | (W ? WRITEABLE : Cint(0)) | (L === :S ? Cint(0) : CONTIGUOUS[L])
    return (flags & wanted == wanted) & (at(Cint, o, NDIM) == N) & (at(Object, o, DESCR) == s.descr)
end

@inline function value(s::ArraySpec{T,N}, o::Object) where {T,N}
    shape, strides = Ptr{Int}(at(Object, o, SHAPE)), Ptr{Int}(at(Object, o, STRIDES))
    return made(
        s, at(Object, o, DATA),
        ntuple(d -> unsafe_load(shape, d), Val(N)), ntuple(d -> unsafe_load(strides, d), Val(N)),
    )
end

@inline function fits(s::ScalarSpec{T}, o::Object) where {T}
    class = at(Object, o, TYPE)
    class == s.class && return true
    T === Float64 && return class == FLOAT[]
    T === Bool && return class == BOOL[]
    T === ComplexF64 && return class == COMPLEX[]
    T === Int64 && class == INT[] || return false
    overflow = Ref{Cint}(0)
    ccall(AS_LONG[], Clonglong, (Object, Ref{Cint}), o, overflow)
    return overflow[] == 0
end

@inline function value(s::ScalarSpec{T}, o::Object) where {T}
    if at(Object, o, TYPE) != s.class
        T === Bool && return o == TRUE[]
        T === Int64 && return ccall(AS_LONG[], Clonglong, (Object, Ref{Cint}), o, Ref{Cint}(0))
    end
    return at(T, o, NUMBER)
end

@inline fits(s::TupleSpec{S}, o::Object) where {S} =
    at(Object, o, TYPE) == TUPLE[] && at(Int, o, NUMBER) == fieldcount(S) && fits(s.items, Ptr{Object}(o + ITEMS))
@inline value(s::TupleSpec, o::Object) = values(s.items, Ptr{Object}(o + ITEMS))

@inline fits(s::Fixed, o::Object) = true
@inline value(s::Fixed, o::Object) = s.value

@generated function fits(specs::S, objects::Ptr{Object}) where {S<:Tuple}
    checks = [:(fits(specs[$k], unsafe_load(objects, $k))) for k in 1:fieldcount(S)]
    return Expr(:block, Expr(:meta, :inline), foldr((a, b) -> :($a && $b), checks; init = true))
end

@generated function values(specs::S, objects::Ptr{Object}) where {S<:Tuple}
    return Expr(:block, Expr(:meta, :inline),
                Expr(:tuple, (:(value(specs[$k], unsafe_load(objects, $k))) for k in 1:fieldcount(S))...))
end

# from a row of words; each `take` returns the value and where the next one begins
function take(s::ArraySpec{T,N}, row::Ptr{Int}) where {T,N}
    size = ntuple(d -> unsafe_load(row, 1 + d), Val(N))
    strides = ntuple(d -> unsafe_load(row, 1 + N + d), Val(N))
    return made(s, Ptr{T}(unsafe_load(row)), size, strides), row + 8 * (1 + 2N)
end
take(::ScalarSpec{T}, row::Ptr{Int}) where {T} = unsafe_load(Ptr{T}(row)), row + 16
take(s::TupleSpec, row::Ptr{Int}) = take(s.items, row)
take(s::Fixed, row::Ptr{Int}) = s.value, row
take(::Tuple{}, row::Ptr{Int}) = (), row
function take(specs::Tuple, row::Ptr{Int})
    first, row = take(specs[1], row)
    rest, row = take(Base.tail(specs), row)
    return (first, rest...), row
end

# --- launches ---------------------------------------------------------------------------------------------------------

"""
One kernel over one ndrange on the CPU. `body` is the function that KernelAbstractions made for one work-group.

Running the work-groups here compiles in a third of the time of the kernel's own call, and needs no tasks where one
thread does.
"""
struct Launch{F,N,I,D}
    body::F
    ndrange::N
    iterspace::I
    check::D
    threads::Int
end

"The same by KernelAbstractions' own call: for other backends, and where its parts are not as they are known here."
struct PublicLaunch{K,N}
    kernel::K
    ndrange::N
end

@inline function groups(body, ndrange, iterspace, ::D, chosen, args) where {D}
    for group in chosen
        context = KA.CompilerMetadata{KA.NDIteration.DynamicSize,D}(group, ndrange, iterspace)
        body(context, args...)
    end
    return nothing
end

# Not inlined into the loops that repeat it, which could then be optimised as one.
@noinline function run(l::Launch, args)
    all = KA.blocks(l.iterspace)
    if l.threads == 1
        groups(l.body, l.ndrange, l.iterspace, l.check, all, args)
    else
        together(l, all, args)
    end
    return nothing
end

@noinline function together(l::Launch, all, args)
    share, more = divrem(length(all), l.threads)
    function part(number)
        first = (number - 1) * share + min(number - 1, more)
        chosen = (@inbounds(all[first+i]) for i in 1:(share+(number<=more)))
        groups(l.body, l.ndrange, l.iterspace, l.check, chosen, args)
    end
    tasks = [Threads.@spawn(part(number)) for number in 2:l.threads]
    failure = nothing
    try
        part(1)
    catch e
        failure = (e, catch_backtrace())
    end
    # whatever happened, nobody may still be at work on the arrays when this returns
    for task in tasks
        try
            wait(task)
        catch e
            failure === nothing && (failure = (e, catch_backtrace()))
        end
    end
    failure === nothing || throw(Failure(failure...))
    return nothing
end

@noinline function run(l::PublicLaunch, args)
    l.kernel(args...; ndrange = l.ndrange)
    KA.synchronize(l.kernel.backend)
    return nothing
end

"An exception with the backtrace of where it was thrown."
struct Failure <: Exception
    error::Any
    trace::Any
end

"Remembers how long a launch takes: a long one gives up Python's lock, which is not worth it for a short one."
mutable struct Clock
    calls::Int
    long::Bool
end

const LONG = 200_000  # nanoseconds

"A launch whose arguments come with every call."
struct Call{L,S<:Tuple}
    launch::L
    specs::S
    clock::Clock
end

"A launch with its arguments."
struct Bound{L,A<:Tuple}
    launch::L
    args::A
    clock::Clock
end

@inline arguments(c::Call, objects, n) = values(c.specs, objects)
@inline arguments(b::Bound, objects, n) = b.args
@inline fits(c::Call{L,S}, objects::Ptr{Object}, n) where {L,S} = n == fieldcount(S) && fits(c.specs, objects)
@inline fits(::Bound, objects::Ptr{Object}, n) = true

function (c::Union{Call,Bound})(objects::Ptr{Object}, n::Int)
    fits(c, objects, n) || return false
    args = arguments(c, objects, n)
    clock = c.clock
    if clock.long
        state = ccall(SAVE_THREAD[], Object, ())
        try
            run(c.launch, args)
        finally
            ccall(RESTORE_THREAD[], Cvoid, (Object,), state)
        end
    elseif clock.calls < 3  # the first is compiled, so it tells nothing
        start = time_ns()
        run(c.launch, args)
        clock.calls += 1
        clock.long = clock.calls > 1 && time_ns() - start > LONG
    else
        run(c.launch, args)
    end
    return true
end

function repeated(b::Bound, times::Int)
    launch, args = b.launch, b.args
    start = time_ns()
    for _ in 1:times
        run(launch, args)
    end
    return (time_ns() - start) / 1e9
end

# --- sources ----------------------------------------------------------------------------------------------------------

"""
Load a source into a module of its own, so that no configuration sees another's. `constants` is Julia text that defines
the tunables; `line` is where the source begins in `path`.
"""
function loaded(text, path, line, constants, checked)
    home = Module(:Kernels)
    Core.eval(home, :(eval(x) = Core.eval($home, x)))
    Core.eval(home, :(using KernelAbstractions))
    Core.eval(home, :(using KernelAbstractions: @atomic, @atomicswap, @atomicreplace))
    Core.eval(home, :(using KernelAbstractions.Extras: @unroll))
    # a macro of the module's own hides Julia's, so that every index is checked
    checked && Core.eval(home, :(macro inbounds(code) esc(code) end))
    include_string(home, constants, "tunables")
    include_string(home, "\n"^(line - 1) * text, path)
    return home
end

"A kernel for one work-group size and one backend."
struct Prepared{K,S<:Tuple}
    kernel::K
    specs::S
end

"""
The kernel of a name for a backend and a work-group size. `@kernel` defines no constructor where Julia itself has a
function of that name (`fill!`, `copy!`), so there the kernel is constructed from the function that it did define.
"""
function constructed(home, name, backend, workgroup)
    made = getfield(home, name)
    any(method -> method.module === home, methods(made)) && return Base.invokelatest(made, backend, workgroup)
    body = Symbol(KA.isgpu(backend) ? :gpu_ : :cpu_, name)
    isdefined(home, body) || error("This kernel is unavailable for backend CPU")
    size, any_size = KA.NDIteration.StaticSize(workgroup), KA.NDIteration.DynamicSize()
    return Base.invokelatest(KA.construct, backend, size, any_size, getfield(home, body))
end

function prepared(home, name, backend, workgroup, specs, vals)
    kernel = constructed(home, name, backend, workgroup)
    return Prepared(kernel, (specs..., map(Fixed, vals)...))
end

function call(p::Prepared, ndrange, threads)
    kernel = p.kernel
    made = if kernel.backend isa CPU && OWN[]
        range, _, iterspace, check = KA.launch_config(kernel, ndrange, nothing)
        most = max(1, min(threads, length(KA.blocks(iterspace))))
        Launch(kernel.f, range, iterspace, check, most)
    else
        PublicLaunch(kernel, ndrange)
    end
    return Call(made, p.specs, Clock(0, false))
end

"A call that runs nothing: it keeps what was read, for a test of the reading."
struct Echo{S<:Tuple}
    specs::S
    read::Base.RefValue{Any}
end
Echo(specs) = Echo(specs, Ref{Any}(()))

function (e::Echo)(objects::Ptr{Object}, n::Int)
    n == length(e.specs) && fits(e.specs, objects) || return false
    e.read[] = values(e.specs, objects)
    return true
end

told(a::Array) = told(pointer(a), size(a), cumprod((sizeof(eltype(a)), size(a)...))[1:ndims(a)])
told(a::Strided) = told(a.start, a.size, a.strides)
told(start, sizes, strides) = string(UInt(start), " [", join(sizes, " "), "] [", join(strides, " "), "]")
told(items::Tuple) = string("(", join(map(told, items), " "), ")")
told(number) = bytes2hex(reinterpret(UInt8, [number]))

const SLOTS = Any[]
const FREE = Int[]
const OWN = Ref(true)

function keep(item)
    if isempty(FREE)
        push!(SLOTS, item)
        return length(SLOTS)
    end
    slot = pop!(FREE)
    SLOTS[slot] = item
    return slot
end

# --- errors -----------------------------------------------------------------------------------------------------------

const PROBLEM = Ref("")

"Note an exception for Python: its type, its message, the line in `path`, and the function where it was thrown."
function note(error, trace, path)
    line = 0
    while true
        if error isa LoadError
            error.file == path && error.line > 0 && (line = error.line)
            error = error.error
        elseif error isa Failure
            error, trace = error.error, error.trace
        elseif error isa CompositeException && !isempty(error.exceptions)
            error = first(error.exceptions)
        elseif error isa TaskFailedException
            error, trace = failure(error.task)
        else
            break
        end
    end
    message = error isa ErrorException ? error.msg :
              try sprint(showerror, error; context = :limit => true) catch; string(typeof(error)) end
    parsing = match(r"^syntax:|ParseError", message) !== nothing || occursin("ParseError", string(typeof(error)))
    if parsing
        told = match(r"around [^\n]*:(\d+)|@ [^\n]*:(\d+)", message)
        told === nothing || (line = parse(Int, something(told[1], told[2])))
    elseif trace !== nothing
        for frame in stacktrace(trace)
            # relative names come with "./" before them
            if !isempty(path) && endswith(String(frame.file), path) && frame.line > 0
                line = frame.line
                break
            end
        end
    end
    # as a C string it would end at a NUL
    PROBLEM[] = join((nameof(typeof(error)), line, replace(first(message, 2000), '\0' => "\\0")), '\x1f')
    return nothing
end

function failure(task)
    isdefined(Base, :current_exceptions) || return task.exception, task.backtrace
    stack = Base.current_exceptions(task)
    return isempty(stack) ? (task.exception, nothing) : (first(stack).exception, first(stack).backtrace)
end

# Where lines of a source are looked for; one kernel runs at a time.
const PATHS = Dict{Int,String}()

# --- devices ----------------------------------------------------------------------------------------------------------
#
# What is the same for every device but the CPU. What differs comes from backends.py: a named tuple of a few functions
# that KernelAbstractions has no name for.

"A device: its backend, its number there (from 1), and the functions of backends.py."
struct Place{B,H<:NamedTuple}
    backend::B
    number::Int
    hooks::H
    version::String
end

located(name, uuid) = Base.locate_package(Base.PkgId(Base.UUID(uuid), name)) !== nothing

"Load a backend's package and return one of its devices; `entry` is the Julia text of backends.py."
function opened(name, uuid, number, entry)
    located(name, uuid) || error("$name.jl is not among the packages of Julia's project; add it there")
    package = Base.require(Base.PkgId(Base.UUID(uuid), name))
    home = Module(:Backend)
    Core.eval(home, :(const $(Symbol(name)) = $package))
    return Base.invokelatest(checked, name, Core.eval(home, Meta.parse(entry)), number, version_of(package))
end

function checked(name, entry, number, version)
    backend = entry.backend
    KA.functional(backend) === false && error("$name.jl finds no driver or no device that it can use")
    count = KA.ndevices(backend)
    number <= count || error("$name.jl finds devices 0 to $(count - 1) only")
    wait() = KA.synchronize(backend)
    hooks = merge((wait = wait, drivers = () -> ()), entry)
    clocked(f) = (start = time_ns(); f(); hooks.wait(); (time_ns() - start) / 1e9)
    return Place(backend, number, merge((timed = clocked,), hooks), version)
end

"Run a function with a device as the current one."
function inside(f, place::Place)
    before = KA.device(place.backend)
    before == place.number && return f()
    KA.device!(place.backend, place.number)
    try
        return f()
    finally
        KA.device!(place.backend, before)
    end
end

"What Python wants to know of a device: name, capability, how many there are, Float64, versions."
function about(p::Place)
    return inside(p) do
        hooks = p.hooks
        facts = Any[hooks.name(), hooks.capability(), KA.ndevices(p.backend), Int(KA.supports_float64(p.backend))]
        append!(facts, ("package=$(p.version)", ("$name=$version" for (name, version) in hooks.drivers())...))
        return join(facts, '\x1f')
    end
end

"Bytes on a device."
struct Block{P<:Place,A}
    place::P
    bytes::A
end

Block(place::Place, count::Int) = inside(() -> Block(place, KA.allocate(place.backend, UInt8, (count,))), place)
Block(place::Place, address::Int, count::Int) = inside(() -> Block(place, place.hooks.wrap(UInt8, address, (count,))), place)

"The stream of a library on which a call's arrays are used, by its handle; -1 is Julia's own."
struct Stream
    handle::Int
end

"The first spec of a device's call: it reads the stream, and where the arrays are."
struct On{P<:Place} <: Spec
    place::P
end

"An array on a device; `L` is its layout, :F, :C or :S."
struct DeviceSpec{T,N,L,P<:Place} <: Spec
    place::P
end
DeviceSpec{T,N,L}(place::P) where {T,N,L,P} = DeviceSpec{T,N,L,P}(place)

"""
A flat array of a device, seen with a stride per dimension, in elements; `U` as for `Strided`. Kernels get it with the
device's own flat array inside.
"""
struct Laid{T,N,U,A<:AbstractVector{T}} <: AbstractArray{T,N}
    flat::A
    first::Int
    size::NTuple{N,Int}
    strides::NTuple{N,Int}
end

Base.size(a::Laid) = a.size
Base.IndexStyle(::Type{<:Laid}) = IndexCartesian()
Base.strides(a::Laid) = a.strides

@inline flat(a::Laid{T,N,U}, I::NTuple{N,Int}) where {T,N,U} = a.first + offset(Val(U), Val(1), 1, a.strides, I)

@inline function Base.getindex(a::Laid{T,N}, I::Vararg{Int,N}) where {T,N}
    @boundscheck checkbounds(a, I...)
    return @inbounds a.flat[flat(a, I)]
end

@inline function Base.setindex!(a::Laid{T,N}, value, I::Vararg{Int,N}) where {T,N}
    @boundscheck checkbounds(a, I...)
    @inbounds a.flat[flat(a, I)] = value
    return a
end

function KA.Adapt.adapt_structure(to, a::Laid{T,N,U}) where {T,N,U}
    inner = KA.Adapt.adapt(to, a.flat)
    return Laid{T,N,U,typeof(inner)}(inner, a.first, a.size, a.strides)
end

# atomic operations are those of the flat array
const Atomix = parentmodule(getfield(KA, Symbol("@atomic")))
const LaidRef = Atomix.IndexableRef{<:Laid}

@inline cartesian(a::Laid{T,N}, I::NTuple{N,Int}) where {T,N} = I
@inline cartesian(a::Laid, I::Tuple{Int}) = Tuple(@inbounds CartesianIndices(a.size)[I[1]])
@inline cartesian(a::Laid{T,1}, I::Tuple{Int}) where {T} = I
@inline inner(r::LaidRef) = Atomix.IndexableRef(r.data.flat, (flat(r.data, cartesian(r.data, r.indices)),))

@inline Atomix.get(r::LaidRef, order) = Atomix.get(inner(r), order)
@inline Atomix.set!(r::LaidRef, value, order) = Atomix.set!(inner(r), value, order)
@inline Atomix.modify!(r::LaidRef, op::O, value, order) where {O} = Atomix.modify!(inner(r), op, value, order)
@inline Atomix.replace!(r::LaidRef, old, new, order, otherwise) = Atomix.replace!(inner(r), old, new, order, otherwise)

# A device array's row: its block's slot or 0, the address or the place in the block, how many elements there are from
# there to its last one, which of them is its first, sizes, byte strides.
function take(s::DeviceSpec{T,N,L}, row::Ptr{Int}) where {T,N,L}
    slot, start, count, first = ntuple(k -> unsafe_load(row, k), Val(4))
    size = ntuple(d -> unsafe_load(row, 4 + d), Val(N))
    strides = ntuple(d -> div(unsafe_load(row, 4 + N + d), sizeof(T)), Val(N))
    memory(dims) = count == 0 ? KA.allocate(s.place.backend, T, dims) :
                   slot == 0 ? s.place.hooks.wrap(T, start, dims) : part(SLOTS[slot]::Block, T, start, dims)
    row += 8 * (4 + 2N)
    L === :F && return memory(size), row
    flat = memory((count,))
    return Laid{T,N,unit(N, L),typeof(flat)}(flat, 1 + first, size, strides), row
end

part(b::Block, ::Type{T}, start, dims) where {T} =
    reshape(reinterpret(T, view(b.bytes, (start+1):(start+prod(dims)*sizeof(T)))), dims)

function take(specs::Tuple{On,Vararg{Spec}}, row::Ptr{Int})
    return inside(specs[1].place) do
        args, rest = take(Base.tail(specs), row + 8)
        return (Stream(unsafe_load(row)), args...), rest
    end
end

"A launch on a device. It returns when the kernel is in its stream."
struct DeviceLaunch{K,N,P<:Place}
    kernel::K
    ndrange::N
    place::P
end

@noinline function run(l::DeviceLaunch, args)
    inside(l.place) do
        start() = l.kernel(Base.tail(args)...; ndrange = l.ndrange)
        handle = args[1].handle
        handle < 0 ? start() : l.place.hooks.ordered(start, handle)
    end
    return nothing
end

function repeated(b::Bound{<:DeviceLaunch}, times::Int)
    place = b.launch.place
    return inside(place) do
        place.hooks.wait()
        return Float64(place.hooks.timed(() -> foreach(_ -> run(b.launch, b.args), 1:times)))
    end
end

"A kernel for one work-group size and one device."
struct PreparedOn{K,S<:Tuple,P<:Place}
    kernel::K
    specs::S
    place::P
end

function prepared(home, name, place::Place, workgroup, specs, vals)
    kernel = constructed(home, name, place.backend, workgroup)
    return PreparedOn(kernel, (On(place), specs..., map(Fixed, vals)...), place)
end

call(p::PreparedOn, ndrange, threads) = Call(DeviceLaunch(p.kernel, ndrange, p.place), p.specs, Clock(0, false))

function upload(b::Block, offset, address, count)
    inside(b.place) do
        copyto!(b.bytes, offset + 1, unsafe_wrap(Array, Ptr{UInt8}(address), count), 1, count)
        b.place.hooks.wait()
    end
end

function download(b::Block, offset, address, count)
    inside(b.place) do
        copyto!(unsafe_wrap(Array, Ptr{UInt8}(address), count), 1, b.bytes, offset + 1, count)
        b.place.hooks.wait()
    end
end

clone(to::Block, from::Block) = inside(() -> copyto!(to.bytes, 1, from.bytes, 1, length(from.bytes)), to.place)

# --- what Python calls ------------------------------------------------------------------------------------------------

const NONE = Ref(C_NULL)
const ZERO = Ref(C_NULL)
const ONE = Ref(C_NULL)
const TRUE = Ref(C_NULL)
const NDARRAY = Ref(C_NULL)
const FLOAT = Ref(C_NULL)
const INT = Ref(C_NULL)
const BOOL = Ref(C_NULL)
const COMPLEX = Ref(C_NULL)
const TUPLE = Ref(C_NULL)
const MISMATCH = Ref(C_NULL)
const AS_LONG = Ref(C_NULL)
const SAVE_THREAD = Ref(C_NULL)
const RESTORE_THREAD = Ref(C_NULL)
const INCREF = Ref(C_NULL)
const SET_ERROR = Ref(C_NULL)

function c_connect(name::Cstring, address::Object)::Cvoid
    getfield(JlkernRuntime, Symbol(unsafe_string(name)))[] = address
    return nothing
end

function answer(number::Ref{Object})
    ccall(INCREF[], Cvoid, (Object,), number[])
    return number[]
end

"The body of every fast call: a Python builtin whose `self` is the number of the slot (below 2^30: one digit)."
function c_fast(self::Object, objects::Ptr{Object}, n::Int)::Object
    slot = Int(at(UInt32, self, 24))
    fitting = true
    try
        fitting = SLOTS[slot](objects, n)::Bool
    catch e
        note(e, catch_backtrace(), get(PATHS, slot, ""))
        return answer(ONE)
    end
    fitting && return answer(ZERO)
    ccall(SET_ERROR[], Cvoid, (Object, Cstring), MISMATCH[], "other types")
    return C_NULL
end

"Run a call with a row of words; 0, or 1 for an exception."
function c_packed(slot::Int, row::Ptr{Int})::Int
    try
        c = SLOTS[slot]
        args, _ = take(c.specs, row)
        run(c.launch, args)
        return 0
    catch e
        note(e, catch_backtrace(), get(PATHS, slot, ""))
        return 1
    end
end

"Load a source; its place in the table, or 0."
function c_load(text::Cstring, path::Cstring, line::Int, constants::Cstring, checked::Int)::Int
    name = unsafe_string(path)
    try
        return keep(loaded(unsafe_string(text), name, line, unsafe_string(constants), checked != 0))
    catch e
        note(e, catch_backtrace(), name)
        return 0
    end
end

"Evaluate text, here and with `home` standing for a slot's module; the place of its value in the table, or 0."
function c_make(text::Cstring, home::Int, path::Cstring)::Int
    name = unsafe_string(path)
    try
        code = Meta.parse(unsafe_string(text))
        made = Core.eval(JlkernRuntime, :(let home = $(home == 0 ? nothing : SLOTS[home]); $code end))
        slot = keep(made)
        PATHS[slot] = name
        return slot
    catch e
        note(e, catch_backtrace(), name)
        return 0
    end
end

"Make the call of a prepared kernel over an ndrange, compiled; its slot, or 0."
function c_call(slot::Int, ndrange::Ptr{Int}, dims::Int, threads::Int)::Int
    path = get(PATHS, slot, "")
    try
        sizes = Tuple(unsafe_load(ndrange, d) for d in 1:dims)
        made = Base.invokelatest(call, SLOTS[slot], sizes, threads)
        Base.invokelatest(precompile, made, (Ptr{Object}, Int))
        new = keep(made)
        PATHS[new] = path
        return new
    catch e
        note(e, catch_backtrace(), path)
        return 0
    end
end

"Bind a call to the arguments in a row of words; its slot, or 0."
function c_bind(slot::Int, row::Ptr{Int})::Int
    path = get(PATHS, slot, "")
    try
        c = SLOTS[slot]
        args, _ = Base.invokelatest(take, c.specs, row)
        new = keep(Bound(c.launch, args, Clock(0, false)))
        PATHS[new] = path
        return new
    catch e
        note(e, catch_backtrace(), path)
        return 0
    end
end

"Launch a bound call n times; the seconds of all, or -1 for an exception."
function c_repeat(slot::Int, times::Int)::Float64
    try
        return repeated(SLOTS[slot]::Bound, times)::Float64
    catch e
        note(e, catch_backtrace(), get(PATHS, slot, ""))
        return -1.0
    end
end

c_problem()::Ptr{UInt8} = pointer(PROBLEM[])

function c_free(slot::Int)::Cvoid
    SLOTS[slot] = nothing
    delete!(PATHS, slot)
    push!(FREE, slot)
    return nothing
end

"What an `Echo` has read, a line per argument."
function c_echo(slot::Int)::Ptr{UInt8}
    PROBLEM[] = join(map(told, SLOTS[slot].read[]), "\n")
    return pointer(PROBLEM[])
end

"Of a device: what `about` says, or nothing for an exception."
function c_about(place::Int)::Ptr{UInt8}
    try
        PROBLEM[] = about(SLOTS[place])
    catch e
        note(e, catch_backtrace(), "")
        return C_NULL
    end
    return pointer(PROBLEM[])
end

"Allocate bytes on a device, or wrap those at an address there; the slot of the block, or 0."
function c_block(place::Int, address::Int, count::Int)::Int
    try
        return keep(address == 0 ? Block(SLOTS[place], count) : Block(SLOTS[place], address, count))
    catch e
        note(e, catch_backtrace(), "")
        return 0
    end
end

"Copy bytes between the host and a block (0 from the host, 1 to it), or all of another block (2); 0, or 1."
function c_move(way::Int, block::Int, offset::Int, other::Int, count::Int)::Int
    try
        b = SLOTS[block]
        way == 0 ? upload(b, offset, other, count) :
        way == 1 ? download(b, offset, other, count) : clone(b, SLOTS[other])
        return 0
    catch e
        note(e, catch_backtrace(), "")
        return 1
    end
end

"Wait until all that was launched on a device is done; 0, or 1 for an exception, of a kernel perhaps."
function c_wait(place::Int)::Int
    try
        p = SLOTS[place]
        inside(p.hooks.wait, p)
        return 0
    catch e
        note(e, catch_backtrace(), "")
        return 1
    end
end

versions() = string(VERSION), version_of(KernelAbstractions)

function version_of(package)
    path = pathof(package)
    path === nothing && return "unknown"
    project = read(joinpath(dirname(dirname(path)), "Project.toml"), String)
    found = match(r"(?m)^version *= *\"([^\"]*)\"", project)
    return found === nothing ? "unknown" : String(found[1])
end

thread_count() = Threads.nthreads()

"The addresses of the functions above, in the order in which bridge.py names them."
addresses() = map(UInt, (
    @cfunction(c_connect, Cvoid, (Cstring, Object)),
    @cfunction(c_fast, Object, (Object, Ptr{Object}, Int)),
    @cfunction(c_packed, Int, (Int, Ptr{Int})),
    @cfunction(c_load, Int, (Cstring, Cstring, Int, Cstring, Int)),
    @cfunction(c_make, Int, (Cstring, Int, Cstring)),
    @cfunction(c_call, Int, (Int, Ptr{Int}, Int, Int)),
    @cfunction(c_bind, Int, (Int, Ptr{Int})),
    @cfunction(c_repeat, Float64, (Int, Int)),
    @cfunction(c_problem, Ptr{UInt8}, ()),
    @cfunction(c_free, Cvoid, (Int,)),
    @cfunction(c_echo, Ptr{UInt8}, (Int,)),
    @cfunction(c_about, Ptr{UInt8}, (Int,)),
    @cfunction(c_block, Int, (Int, Int, Int)),
    @cfunction(c_move, Int, (Int, Int, Int, Int, Int)),
    @cfunction(c_wait, Int, (Int,)),
))

end
