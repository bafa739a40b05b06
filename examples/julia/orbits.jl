# An ODE: sun, planet, moon and comet under gravity (G = 1), by the Dormand-Prince 5(4) method with step control, from the state in
# orbits.csv. Draws the orbits and how well energy is kept as an SVG, and writes the trajectory as CSV. Standard library only.
using DelimitedFiles, LinearAlgebra, Printf

table, _ = readdlm("orbits.csv", ',', Any; header = true)
names = String.(table[:, 1])
mass = Float64.(table[:, 6])
bodies = length(mass)
state0 = collect(vec(permutedims(Float64.(table[:, 2:5]))))      # x, y, vx, vy of each body in turn

function gravity(state)
    change = zero(state)
    for i in 1:bodies
        a = 4i - 3
        change[a:a+1] = state[a+2:a+3]
        for j in 1:bodies
            i == j && continue
            b = 4j - 3
            d = state[b:b+1] - state[a:a+1]
            change[a+2:a+3] += mass[j] * d / norm(d)^3
        end
    end
    change
end

# Dormand & Prince (1980), J. Comput. Appl. Math. 6, 19.
const A = [[], [1/5], [3/40, 9/40], [44/45, -56/15, 32/9], [19372/6561, -25360/2187, 64448/6561, -212/729],
           [9017/3168, -355/33, 46732/5247, 49/176, -5103/18656], [35/384, 0, 500/1113, 125/192, -2187/6784, 11/84]]
const B4 = [5179/57600, 0, 7571/16695, 393/640, -92097/339200, 187/2100, 1/40]

function solve(f, y, t, stop; tolerance = 1e-9)
    times, states, h = [t], [y], 1e-3
    while t < stop
        h = min(h, stop - t)
        k = Vector{Vector{Float64}}()
        local new
        for row in A
            new = y
            for (weight, slope) in zip(row, k)
                new = new + h * weight * slope
            end
            push!(k, f(new))
        end
        wrong = norm(new - y - h * sum(B4 .* k)) / tolerance
        if wrong <= 1
            t, y = t + h, new
            push!(times, t)
            push!(states, y)
        end
        h *= clamp(0.9 * wrong^-0.2, 0.2, 5)
    end
    times, states
end

function energy(state)
    at(i) = state[4i-3:4i-2]
    kinetic = sum(mass[i] * norm(state[4i-1:4i])^2 / 2 for i in 1:bodies)
    kinetic - sum(mass[i] * mass[j] / norm(at(i) - at(j)) for i in 1:bodies for j in 1:i-1)
end

times, states = solve(gravity, state0, 0.0, 8.2)
drift = [abs(energy(s) / energy(state0) - 1) for s in states]
@printf("%d steps, energy kept to %.1e\n", length(times), maximum(drift))
writedlm("trajectory.csv", [times reduce(hcat, states)'], ',')

colours = Dict("sun" => "#e6a817", "planet" => "#2471a3", "moon" => "#7f8c8d", "comet" => "#c0392b")
polyline(points, colour, width) = string("<polyline fill=\"none\" stroke=\"", colour, "\" stroke-width=\"", width, "\" points=\"",
    join((@sprintf("%.2f,%.2f", p...) for p in points), " "), "\"/>\n")
open("orbits.svg", "w") do io
    println(io, """<svg xmlns="http://www.w3.org/2000/svg" width="900" height="620" font-family="sans-serif" font-size="14">""")
    println(io, """<rect width="900" height="620" fill="white"/><text x="20" y="32" font-size="18">""",
            """Sun, planet, moon and comet</text>""")
    place(s, i) = (640 + 170 * s[4i-3], 250 - 170 * s[4i-2])
    for i in 1:bodies
        print(io, polyline([place(s, i) for s in states], colours[names[i]], names[i] == "moon" ? 0.8 : 1.5))
        x, y = place(states[end], i)
        println(io, """<circle cx="$x" cy="$y" r="$(names[i] == "sun" ? 9 : 4)" fill="$(colours[names[i]])"/>""",
                """<text x="$(x + 10)" y="$(names[i] == "moon" ? y - 8 : y + 16)">$(names[i])</text>""")
    end
    # Below: the relative error of the energy.
    scaled = [(60 + 800 * t / times[end], 590 - 12 * log10(max(d, 1e-16) / 1e-16)) for (t, d) in zip(times, drift)]
    println(io, """<path d="M60 470V590H860" fill="none" stroke="black"/><text x="450" y="612" text-anchor="middle">time</text>""")
    for power in -16:4:-8
        println(io, """<text x="52" y="$(595 - 12 * (power + 16))" text-anchor="end">1e$power</text>""")
    end
    println(io, """<text x="70" y="482">relative error of the energy</text>""")
    print(io, polyline(scaled, "#555", 1))
    println(io, "</svg>")
end
