x = 1;
error ("this went wrong");
disp ("word");
