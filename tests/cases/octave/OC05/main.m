a = load ("in.txt");
disp (twice (a));
