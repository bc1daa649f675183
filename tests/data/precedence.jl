# Prints what Julia's parser makes of expressions, in the format that `make_precedence.py` describes.
# Input: expressions separated by NUL on standard input. Output: one s-expression (or `error`) for each, the same way.
# With JuliaSyntax (the parser of Julia 1.10 and newer) on the load path, a second s-expression follows each first one.

const HAS_SYNTAX = Base.find_package("JuliaSyntax") !== nothing
HAS_SYNTAX && @eval import JuliaSyntax

islines(x) = x isa LineNumberNode
kept(xs) = filter(!islines, xs)
isexpr(x, head) = x isa Expr && x.head === head
quoted(x) = x isa QuoteNode ? x.value : (isexpr(x, :quote) && length(x.args) == 1) ? x.args[1] : nothing

join_all(parts...) = string('(', join(parts, ' '), ')')
shown(xs) = map(show_node, xs)

# Floats leave as bits between \1 marks: the Python side writes them in its own notation.
show_node(x::Float64) = string('\1', "f64:", string(reinterpret(UInt64, x), base = 16, pad = 16), '\1')
show_node(x::Float32) = string("Float32(", show_node(Float64(x)), ')')
show_node(x::Bool) = string(x)
show_node(x::Int64) = string(x)
show_node(x::Integer) = string(typeof(x), '(', string(x, base = 10), ')')
show_node(x::Char) = string("Char(", UInt32(x) |> Int, ')')
show_node(x::AbstractString) = string('"', replace(replace(replace(x, '\\' => "\\\\"), '"' => "\\\""), '\n' => "\\n"), '"')
show_node(x::Symbol) = string(x)
show_node(::Nothing) = "nothing"
show_node(x::QuoteNode) = join_all("quote", show_node(x.value))
show_node(x) = error("no form for a $(typeof(x))")

macro_name(x::Symbol) = string(x)
macro_name(x::Expr) = string(show_path(x.args[1]), '.', quoted(x.args[2]))
macro_name(x) = error("no form for the macro $x")
show_path(x::Symbol) = string(x)
show_path(x::Expr) = string(show_path(x.args[1]), '.', quoted(x.args[2]))

"The operator under a dot, or nothing: `.+` is a call of `+` over elements; `.` and `...` are none."
function undotted(f)
    f isa Symbol || return nothing
    s = string(f)
    return length(s) > 1 && s[1] == '.' && s[nextind(s, 1)] != '.' ? s[nextind(s, 1):end] : nothing
end

"Arguments of a call: keywords last, those after `;` behind those before it."
function arguments(args)
    args = kept(args)
    named = Any[]
    for x in args
        isexpr(x, :parameters) || continue
        for y in x.args
            isexpr(y, :kw) || error("no form for an argument after ; that is no keyword")
            push!(named, y)
        end
    end
    args = filter(x -> !isexpr(x, :parameters), args)
    return vcat(filter(x -> !isexpr(x, :kw), args), filter(x -> isexpr(x, :kw), args), named)
end

"The left side of a definition: as written, with `(parameters ...)` last."
function signature(x)
    if isexpr(x, :where) || isexpr(x, :(::))
        return join_all(string(x.head), signature(x.args[1]), shown(x.args[2:end])...)
    elseif isexpr(x, :call)
        plain = filter(y -> !isexpr(y, :parameters), x.args)
        named = filter(y -> isexpr(y, :parameters), x.args)
        tail = isempty(named) ? String[] : [join_all("parameters", shown(named[1].args)...)]
        return join_all("call", shown(plain)..., tail...)
    end
    return show_node(x)
end
isdefinition(x) = isexpr(x, :call) || ((isexpr(x, :where) || isexpr(x, :(::))) && isdefinition(x.args[1]))

"A block of one statement is that statement."
unwrapped(x) = isexpr(x, :block) && length(kept(x.args)) == 1 ? kept(x.args)[1] : x
asblock(x) = isexpr(x, :block) ? x : Expr(:block, x)
parameters(x) = isexpr(x, :tuple) ? x : isexpr(x, :block) ? error("no form for keywords of ->") : Expr(:tuple, x)
lambda(params, body) = join_all("->", show_node(parameters(params)), show_node(unwrapped(body)))

function show_node(x::Expr)
    head, args = x.head, kept(x.args)
    if head === :call
        name = undotted(args[1])
        name === nothing && return join_all("call", show_node(args[1]), shown(arguments(args[2:end]))...)
        return join_all("dotcall", name, shown(args[2:end])...)
    elseif head === :. && length(args) == 2 && isexpr(args[2], :tuple)
        return join_all("dotcall", show_node(args[1]), shown(arguments(args[2].args))...)
    elseif head === :. && length(args) == 2 && quoted(args[2]) isa Symbol
        return join_all(".", show_node(args[1]), string(quoted(args[2])))
    elseif head === :macrocall
        return join_all("macrocall", macro_name(args[1]), shown(args[2:end])...)
    elseif head === :do
        call, block = args
        isexpr(call, :call) || error("no form for do after something else than a call")
        return join_all("call", show_node(call.args[1]), lambda(block.args...), shown(arguments(call.args[2:end]))...)
    elseif head === :->
        return lambda(args...)
    elseif head === :function
        return join_all("function", signature(args[1]), show_node(asblock(args[2])))
    elseif head === :(=) && isdefinition(args[1])
        return join_all("function", signature(args[1]), show_node(asblock(args[2])))
    elseif head === :elseif
        return join_all("if", show_node(unwrapped(args[1])), shown(args[2:end])...)
    elseif head === :let
        return join_all("let", show_node(asblock(args[1])), show_node(args[2]))
    elseif head === :struct
        return join_all(args[1] ? "mutable" : "struct", shown(args[2:end])...)
    elseif head === :error || head === :incomplete
        throw(Meta.ParseError("incomplete"))
    elseif head in (:generator, :try, :toplevel, :using, :import, :export, :module, :quote, :$)
        head === :quote && length(args) == 1 && return join_all("quote", show_node(args[1]))
        error("no form for $head")
    end
    return join_all(string(head), shown(args)...)
end

function attempt(parse, text)
    tree = try
        parse(text)
    catch problem
        return "error"
    end
    try
        return show_node(tree)
    catch problem
        problem isa Meta.ParseError && return "error"
        return string("none ", problem isa ErrorException ? problem.msg : typeof(problem))
    end
end

newest(text) = JuliaSyntax.parsestmt(Expr, text; ignore_warnings = true, version = v"1.10")

function main()
    for text in split(read(stdin, String), '\0')
        print(attempt(Meta.parse, text), '\0')
        HAS_SYNTAX && print(Base.invokelatest(attempt, newest, text), '\0')
    end
end

main()
