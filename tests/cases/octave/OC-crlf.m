x = "café";
if true
  disp (x), disp (argv ())
end
%{
block
%}
z = input ("");
disp (z)
w = undefd;