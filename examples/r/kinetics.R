# Enzyme kinetics with and without an inhibitor: Michaelis-Menten fits with 95 % confidence bands (delta method), and a test of
# whether the inhibitor changes Km, Vmax or both.
library(tidyverse)
library(patchwork)

rates <- read_csv("kinetics.csv", show_col_types = FALSE) |>
  mutate(inhibitor = factor(inhibitor_uM, labels = c("none", "50 µM")))

fits <- rates |>
  group_by(inhibitor) |>
  group_map(\(part, key) list(key = key$inhibitor, fit = nls(rate ~ vmax * substrate_mM / (km + substrate_mM), part,
                                                             start = list(vmax = 1.5, km = 0.5))))

band <- map_dfr(fits, function(one) {
  p <- coef(one$fit)
  s <- 10^seq(-1.5, 0.95, length.out = 200)
  gradient <- cbind(s / (p["km"] + s), -p["vmax"] * s / (p["km"] + s)^2)
  se <- sqrt(rowSums((gradient %*% vcov(one$fit)) * gradient))
  t <- qt(0.975, df.residual(one$fit))
  tibble(inhibitor = one$key, substrate_mM = s, rate = p["vmax"] * s / (p["km"] + s), low = rate - t * se, high = rate + t * se)
})

parameters <- map_dfr(fits, \(one) broom::tidy(one$fit) |> mutate(inhibitor = one$key))
write_csv(parameters, "parameters.csv")
print(parameters)

competitive <- nls(rate ~ vmax * substrate_mM / (km[inhibitor] + substrate_mM), rates, start = list(vmax = 1.5, km = c(0.5, 1)))
full <- nls(rate ~ vmax[inhibitor] * substrate_mM / (km[inhibitor] + substrate_mM), rates,
            start = list(vmax = c(1.5, 1.5), km = c(0.5, 1)))
print(anova(competitive, full))

curve <- ggplot(band, aes(substrate_mM, rate, colour = inhibitor, fill = inhibitor)) +
  geom_ribbon(aes(ymin = low, ymax = high), alpha = 0.25, colour = NA) +
  geom_line() +
  geom_point(data = rates, size = 1.5, alpha = 0.7) +
  scale_x_log10() +
  labs(x = "substrate (mM)", y = expression(rate ~ (mu * mol ~ min^-1)), title = "Michaelis–Menten fits, 95 % confidence")

estimates <- ggplot(parameters, aes(estimate, inhibitor, colour = inhibitor)) +
  geom_pointrange(aes(xmin = estimate - 1.96 * std.error, xmax = estimate + 1.96 * std.error), show.legend = FALSE) +
  facet_wrap(~term, scales = "free_x") +
  labs(x = NULL, y = NULL)

curve / estimates + plot_layout(heights = c(3, 1), guides = "collect") & theme_bw() & scale_colour_brewer(palette = "Set1") &
  scale_fill_brewer(palette = "Set1")
