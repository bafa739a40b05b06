## Tells a figure from the same figure cleared and drawn again, or with something added.
function contents = __figure_contents__ (fig)
  contents = sort (double (findall (fig)));
endfunction
