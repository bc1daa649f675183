# Run by `jlkern setup --image` in a Julia that writes a system image: what stays loaded here is in the image.
#
# The environment says what: JLKERN_IMAGE_PROJECT, JLKERN_IMAGE_PACKAGES (names, by commas), JLKERN_IMAGE_RUNTIME (the
# path of runtime.jl), JLKERN_IMAGE_DIGEST (of that file) and JLKERN_IMAGE_TRACE (the precompile statements of a run).
# Such a Julia has not initialised Base; what is needed for loading packages is done here and undone at the end.

Base.reinit_stdio()
@eval Sys BINDIR = ccall(:jl_get_julia_bindir, Any, ())::String
@eval Sys STDLIB = abspath(BINDIR, "..", "share", "julia", "stdlib", "v$(VERSION.major).$(VERSION.minor)")
Base.init_depot_path()
if haskey(ENV, "JULIA_LOAD_PATH")
    Base.init_load_path()
    Base.ACTIVE_PROJECT[] = ENV["JLKERN_IMAGE_PROJECT"]
else
    copy!(LOAD_PATH, [ENV["JLKERN_IMAGE_PROJECT"], "@stdlib"])
end

for name in split(ENV["JLKERN_IMAGE_PACKAGES"], ',')
    Base.require(Main, Symbol(name))
end
Base.include(Main, ENV["JLKERN_IMAGE_RUNTIME"])
Core.eval(JlkernRuntime, :(const BUILT_FROM = $(ENV["JLKERN_IMAGE_DIGEST"])))

# The statements name packages by themselves, and much that is not here: kernels of that run, PythonCall.
let place = Module(), known = 0
    for (key, loaded) in Base.loaded_modules
        key.name in ("Main", "Base", "Core") || Core.eval(place, :(const $(Symbol(key.name)) = $loaded))
    end
    Core.eval(place, :(const JlkernRuntime = $(Main.JlkernRuntime)))
    for line in eachline(ENV["JLKERN_IMAGE_TRACE"])
        startswith(line, "precompile(Tuple{") && !occursin("PythonCall", line) || continue
        try
            signature = Core.eval(place, Meta.parse(line).args[2])
            known += ccall(:jl_compile_hint, Int32, (Any,), signature) != 0
        catch
        end
    end
    println("compiled for ", known, " signatures")
end

empty!(Core.ARGS)
empty!(Base.ARGS)
empty!(LOAD_PATH)
empty!(DEPOT_PATH)
Base.ACTIVE_PROJECT[] = nothing
if isdefined(Base, :TOML_CACHE)
    empty!(Base.TOML_CACHE.d)
    Base.TOML.reinit!(Base.TOML_CACHE.p, "")
end
@eval Sys BINDIR = ""
@eval Sys STDLIB = ""
