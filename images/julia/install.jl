# Called when the image is built: installs and precompiles the usual packages if a registry can be had, and else sees to it that
# a job which wants one is told so at once.
import Pkg

const PACKAGES = ["Plots", "CSV", "DataFrames", "Luxor", "StatsPlots", "Distributions", "DifferentialEquations"]

depot = first(DEPOT_PATH)
try
    Pkg.add(PACKAGES)
    Pkg.precompile()
catch problem
    println("No Julia packages in this image: ", sprint(showerror, problem))
    registries = joinpath(depot, "registries")
    rm(registries; force = true, recursive = true)
    mkpath(joinpath(registries, "none"))
    cp("/usr/share/scifarm/registry.toml", joinpath(registries, "none", "Registry.toml"))
end

# Not every Julia knows how to keep its heap within a job's memory.
help = read(`$(Base.julia_cmd()[1]) --help`, String) * read(`$(Base.julia_cmd()[1]) --help-hidden`, String)
occursin("--heap-size-hint", help) && touch("/usr/share/scifarm/knows-heap-size-hint")
