## print (...): Octave's own print (see `help __print__`), which on its way through SVG leaves images, colour bars too, out of
## PDF, SVG and EPS files: figures that hold images go by way of PostScript. The figure is marked as saved by the script.
function varargout = print (varargin)
  handles = varargin(cellfun (@(arg) isscalar (arg) && isfigure (arg), varargin));
  fig = [handles{:}, get(0, "currentfigure")];
  if (isempty (fig))
    [varargout{1:nargout}] = __print__ (varargin{:});
    return;
  endif
  fig = fig(1);
  if (strcmp (get (fig, "__graphics_toolkit__"), "fltk"))
    graphics_toolkit (fig, "qt");   # FLTK draws visible windows only
  endif

  words = varargin(cellfun (@ischar, varargin));
  names = words(! strncmp (words, "-", 1));
  device = regexprep (strjoin (words(strncmp (words, "-d", 2)), ""), "^-d", "");
  if (isempty (device) && ! isempty (names))
    [~, ~, extension] = fileparts (names{end});
    device = extension(2:end);
  endif

  images = findall (fig, "type", "image");
  if (isempty (images) || ! strcmp (get (fig, "__graphics_toolkit__"), "qt"))
    [varargout{1:nargout}] = __print__ (varargin{:});
  elseif (strcmpi (device, "svg") && ! isempty (names))
    print_svg_by_postscript (fig, names{end});
  elseif (! isempty (regexp (device, "^(pdf|e?ps)", "ignorecase")))
    __print__ (varargin{:}, "-nosvgconvert");
  else
    [varargout{1:nargout}] = __print__ (varargin{:});
  endif
  setappdata (fig, "saved_by_script", __figure_contents__ (fig));
endfunction

function print_svg_by_postscript (fig, name)
  page = tempname ();
  __print__ (fig, [page ".eps"], "-depsc", "-loose", "-nosvgconvert");
  quoted = ["'" strrep(name, "'", "'\\''") "'"];
  [status, message] = system (["gs -q -o " page ".pdf -sDEVICE=pdfwrite -dEPSCrop " page ".eps 2>&1 && " ...
                               "pdftocairo -svg " page ".pdf " quoted " 2>&1"]);
  delete ([page ".*"]);
  if (status)
    error ("print: %s", message);
  endif
endfunction
