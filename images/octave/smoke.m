## Loads the packages that the image promises, calls one function of each of the heavy ones, and prints a surface in each format.
names = {"control", "signal", "statistics", "image", "io", "symbolic", "struct", "optim", "mapping", "netcdf", "splines"};
for i = 1:numel (names)
  pkg ("load", names{i});
endfor
assert (pole (tf (1, [1 3 2])), [-2; -1]);
[b, a] = butter (4, 0.3);
assert (abs (freqz (b, a, [0 1])(1)), 1, 1e-9);
assert (normcdf (0), 0.5);
assert (size (imresize (ones (4), 2)), [8 8]);
assert (norm (lsqnonneg ([1 0; 0 1], [1; 2]) - [1; 2]) < 1e-9);
syms x
assert (isequal (diff (x^2, x), 2*x));

surf (peaks);
colorbar;
files = {"smoke.png", "smoke.pdf", "smoke.svg", "smoke.eps"};
for i = 1:numel (files)
  print (files{i});
  assert (stat (files{i}).size > 5000);
endfor
figure;
plot (1:10);
