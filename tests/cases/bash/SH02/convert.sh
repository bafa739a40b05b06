# A PDF page to a bitmap, by the old and the new name of the command.
gs -q -dNOPAUSE -dBATCH -sDEVICE=pdfwrite -sOutputFile=in.pdf -c '/Helvetica findfont 40 scalefont setfont 100 400 moveto (Page one) show showpage'
convert -density 60 in.pdf out.png
magick identify out.png
