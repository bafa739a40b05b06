plot (1:3);
figure; bar ([3 1 2]); print ("saved.png");
figure; hist (randn (1, 100)); title ("third");
figure; plot (1); print ("x.png"); hold on; plot (2, 2, "o");
figure;
