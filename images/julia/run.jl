# Runs the script named by the first argument as `julia SCRIPT` would, and keeps what it displays, or ends with, that can be drawn:
# figure-1.png, figure-2.png, … in the output folder.
module ScifarmFigures

struct Files <: AbstractDisplay end

const OUTPUT = isdir("/sandbox/output") ? "/sandbox/output" : pwd()

function free_name()
    number = 1
    while ispath(joinpath(OUTPUT, "figure-$number.png"))
        number += 1
    end
    joinpath(OUTPUT, "figure-$number.png")
end

function Base.display(files::Files, value)
    # A number or a table is for the displays below this one.
    showable("image/png", value) || throw(MethodError(display, (files, value)))
    path = free_name()
    try
        open(io -> show(io, "image/png", value), path, "w")
    catch problem
        rm(path; force = true)
        println(stderr, "note: a figure could not be drawn: ", sprint(showerror, problem))
    end
    nothing
end

# A plotting package puts a display of its own on top when it is loaded; windows cannot open here.
on_top(package = nothing) = (Files() in Base.Multimedia.displays && popdisplay(Files()); pushdisplay(Files()))

# Julia reads CRLF itself. A byte order mark goes, and bytes that are not UTF-8 are taken for Latin-1.
function clean(script)
    bytes = read(script)
    mark = length(bytes) >= 3 && bytes[1:3] == [0xef, 0xbb, 0xbf]
    text = String(mark ? bytes[4:end] : copy(bytes))
    isvalid(text) && !mark && return nothing
    isvalid(text) ? text : String(Char.(codeunits(text)))
end

function run(script)
    on_top()
    push!(Base.package_callbacks, on_top)
    text = isfile(script) ? clean(script) : nothing
    try
        path = abspath(script)
        value = text === nothing ? Base.include(Main, path) :
            task_local_storage(() -> include_string(Main, text, path), :SOURCE_PATH, path)   # where include() looks for others
        value !== nothing && Base.invokelatest(showable, "image/png", value) && Base.invokelatest(display, Files(), value)
    catch problem
        print(stderr, "ERROR: ")
        Base.invokelatest(showerror, stderr, problem, from_script(catch_backtrace()))
        println(stderr)
        exit(1)
    end
end

# The frames of this file and below are not the script's.
function from_script(trace)
    frames = stacktrace(trace)
    last = findfirst(frame -> string(frame.file) == @__FILE__, frames)
    last === nothing ? trace : frames[1:last-1]
end

end

let script = popfirst!(ARGS)
    @eval Base PROGRAM_FILE = $script
    push!(LOAD_PATH, dirname(abspath(script)))
    ScifarmFigures.run(script)
end
