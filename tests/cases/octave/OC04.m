pkg load control statistics signal
disp (pole (tf (1, [1 3 2])));
disp (normpdf (0));
[b, a] = butter (2, 0.5);
disp (b);
