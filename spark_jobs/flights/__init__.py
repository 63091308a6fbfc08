"""The flights of 2013 as a feed of lines, with damaged ones between them."""
