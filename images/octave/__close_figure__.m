## What closes a figure. When Octave ends it closes the figures still open: before the first goes, those that the script has not
## printed as they stand are written as figure-1.png, figure-2.png, … to the output folder. One that the script closes just goes.
function __close_figure__ (varargin)
  persistent kept = false;
  fig = gcbf ();
  if (! kept && isempty (setdiff ({dbstack().name}, {"__close_figure__", "close"})))
    kept = true;
    keep_open_figures ();
  endif
  delete (fig);
endfunction

function keep_open_figures ()
  output = "/sandbox/output";
  if (! isfolder (output))
    output = pwd ();
  endif
  number = 0;
  for fig = sort (double (get (0, "children")))'
    if (isempty (get (fig, "children"))
        || (isappdata (fig, "saved_by_script") && isequal (getappdata (fig, "saved_by_script"), __figure_contents__ (fig))))
      continue;
    endif
    do
      name = sprintf ("%s/figure-%d.png", output, ++number);
    until (! exist (name, "file"))
    try
      print (fig, name, "-dpng", "-r120");
    catch problem
      fprintf (stderr, "note: an open figure could not be drawn: %s\n", problem.message);
    end_try_catch
  endfor
endfunction
