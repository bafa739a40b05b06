clear all; close all; clc
plot (1:3);
exit (3);
