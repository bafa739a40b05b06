module Mymod
twice(x) = 2x
end
