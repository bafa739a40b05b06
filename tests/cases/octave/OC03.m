subplot (2, 1, 1);
plot (1:10, "-o");
title ("plot and image, 图");
subplot (2, 1, 2);
imagesc (magic (8));
colorbar;
print ("both.pdf");
print ("both.svg", "-dsvg");
print -depsc both.eps
